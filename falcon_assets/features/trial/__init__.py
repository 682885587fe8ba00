"""Trial: an instance is computed for inspection, and deleted."""
