"""OpenLineage: runs of instances as events, exported or sent."""
