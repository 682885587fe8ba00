"""Logs of the runs of instances."""
