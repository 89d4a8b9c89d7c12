"""Verdicts that prove themselves: certificates and their independent checker."""
