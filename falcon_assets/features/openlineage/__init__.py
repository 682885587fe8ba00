"""Runs of instances as OpenLineage events, and how these are sent."""
