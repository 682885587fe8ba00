"""Dagster's names, keys, tags and partitions for entities and instances."""
