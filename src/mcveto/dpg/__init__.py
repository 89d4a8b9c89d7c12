"""Directed proof generation: traces fold into a graph that is refined until it is a proof or yields an input."""
