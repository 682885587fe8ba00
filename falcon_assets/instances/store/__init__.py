"""Queries on instances in the ledger."""
