"""Completeness: how much of what was sent of an instance is there, and whether that is enough."""
