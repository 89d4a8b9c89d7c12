"""Other ways to a verdict than directed proof generation: path exploration, bounded model checking, and a race."""
