"""What is written into Dagster's event log and read back by the ledger: typed records, with both ways side by side."""
