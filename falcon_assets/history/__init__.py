"""Dagster's event log and runs, and the ledger, which is folded from them."""
