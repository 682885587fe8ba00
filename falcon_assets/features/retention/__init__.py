"""Retention: plans for what is deleted from clusters and what stays, and passes that carry them out."""
