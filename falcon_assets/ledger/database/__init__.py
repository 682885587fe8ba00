"""The database of the ledger: its schema, its clock, its locks, and how rows are written."""
