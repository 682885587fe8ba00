"""Names: unique here and in Dagster, and known where they are referred to."""
