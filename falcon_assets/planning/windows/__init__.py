"""Expressions and windows: which feed instances an expression names."""
