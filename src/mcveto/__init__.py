"""mcveto: a model checker for machine code."""
