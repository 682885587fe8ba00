"""Flows: from what is to be moved to how: the hops, and the feeds that make them."""
