"""Compaction: instances of feeds are written once more, sorted, in few files."""
