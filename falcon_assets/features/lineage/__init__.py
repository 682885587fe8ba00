"""Lineage: the versions that a version was made from, those made from it, and versions that may be forgotten."""
