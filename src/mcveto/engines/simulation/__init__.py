"""Property simulation: one abstract state for all paths that meet, kept apart only where the property needs it."""
