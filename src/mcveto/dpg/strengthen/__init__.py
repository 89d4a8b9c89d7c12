"""Strategy `auto`: invariants speculated and filtered, then strengthened towards the property."""
