"""Kinds of execute endpoints of a cluster: their configuration, and whether they answer."""
