"""Thin adapters to Dagster: partitions, mappings, assets, jobs and the instance storage."""
