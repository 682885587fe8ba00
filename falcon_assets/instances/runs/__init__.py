"""Executes instances in a run of Dagster: claims, locks, records."""
