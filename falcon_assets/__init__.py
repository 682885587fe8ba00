"""Apache Falcon's clusters, feeds and processes as a Dagster code location."""
