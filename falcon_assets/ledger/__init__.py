"""The ledger: what happened to instances, folded from Dagster's history into tables that decisions read."""
