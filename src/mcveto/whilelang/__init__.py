"""The While language: terms, programs with memory, dynamic-logic proofs, and the way down to P-code."""
