"""Secrets: keys, and encrypted values in definitions."""
