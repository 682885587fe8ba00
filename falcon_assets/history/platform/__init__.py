"""What Dagster runs on: PostgreSQL, its storage, the run launcher, and the ledger beside its history."""
