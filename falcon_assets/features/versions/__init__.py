"""Versions of feed instances that were replaced and are kept: listed and restored."""
