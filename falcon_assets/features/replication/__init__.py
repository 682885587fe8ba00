"""Copies of feeds on other clusters."""
