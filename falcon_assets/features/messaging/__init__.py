"""Messaging: transitions of instances as CloudEvents to the broker of their cluster."""
