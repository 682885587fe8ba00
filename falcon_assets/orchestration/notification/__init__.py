"""Telling receivers what became of instances."""
