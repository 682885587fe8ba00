"""Kinds of storage for instances: one protocol, and a package for each kind that fulfils it."""
