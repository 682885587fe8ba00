"""Copying an instance between any two stores: the plan's tasks, what they verified, and the publication of it."""
