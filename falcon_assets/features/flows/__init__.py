"""Flows: submitted, planned, run and watched as a whole."""
