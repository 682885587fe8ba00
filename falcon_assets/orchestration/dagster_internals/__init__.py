"""What Dagster does not promise and we cannot do without, each with its reason; an upgrade looks here first."""
