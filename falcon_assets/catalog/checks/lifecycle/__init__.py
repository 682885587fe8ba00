"""Replication, retention and deadlines of feeds."""
