"""Spark sessions for a cluster's execute interface and the workflow engines that run on them."""
