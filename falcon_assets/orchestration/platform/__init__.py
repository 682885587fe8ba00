"""What Dagster runs on: PostgreSQL, storage, the run launcher, and all that is private of Dagster."""
