"""Instances that are partitions of tables."""
