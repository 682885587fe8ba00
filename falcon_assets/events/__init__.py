"""What is written into Dagster's event log and read back by the ledger."""
