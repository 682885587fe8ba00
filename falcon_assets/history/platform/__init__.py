"""Infrastructure of Dagster: PostgreSQL, its storage, the run launcher, and the ledger beside its history."""
