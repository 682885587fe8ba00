"""Spark: sessions for a cluster's execute interface, and how data is read, written and copied there."""
