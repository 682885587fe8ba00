"""Calendars, windows and validities: instances that can never exist or be read."""
