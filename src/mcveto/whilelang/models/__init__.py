"""Library functions as While programs over the machine's bytes."""
