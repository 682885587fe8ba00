"""The baseline: the oldest ledger that is migrated. New ones are made from the tables of the code."""

from __future__ import annotations

revision = "0028"
down_revision = None


def upgrade() -> None:
    """Nothing: what has no revision gets its tables from ``database.upgrade``."""


def downgrade() -> None:
    """Nothing is older."""
