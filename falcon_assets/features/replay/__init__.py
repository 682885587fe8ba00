"""Replay: versions are computed again from their recorded inputs, and compared."""
