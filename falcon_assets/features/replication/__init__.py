"""Replication: copies of feeds on other clusters."""
