"""Instances of feeds and processes: where they lie, what they read and write, what depends on what."""
