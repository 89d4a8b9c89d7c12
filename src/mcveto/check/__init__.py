"""Verdicts that prove themselves: certificates with their independent checker, and replay of counterexamples."""
