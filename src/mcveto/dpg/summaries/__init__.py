"""Proofs of recursion of any depth: procedures with summaries."""
