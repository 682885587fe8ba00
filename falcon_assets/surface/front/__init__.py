"""The front: Dagster's webserver with our routes, for many users; see docs/guides/serving.md."""
