"""File systems of clusters: where an instance is, whether it is complete, what it holds, how it is published."""
