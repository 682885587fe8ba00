"""Versions that are computed once more from what they were made from, and compared."""
