"""Passes of retention, their schedules and what they keep."""
