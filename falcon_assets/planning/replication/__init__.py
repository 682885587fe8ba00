"""Replication: what its targets have, from which sources, and how it is copied."""
