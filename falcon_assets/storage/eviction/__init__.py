"""Retention of instances and of staged data: removing, archiving, freeing the space."""
