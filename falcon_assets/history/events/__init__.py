"""Records in Dagster's event log that the ledger reads back: typed, with writing and reading side by side."""
