"""Workflow engines: what computes an instance."""
