"""The latest event that said something about instances, which those who wait for news compare."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0060"
down_revision = "0059"


def upgrade() -> None:
    """Adds the column, as if each event had."""
    said = "the latest of them that said something about what the ledger keeps"
    op.add_column(
        "fold", sa.Column("fact_id", sa.BigInteger, nullable=False, server_default="0", comment=said), schema="falcon"
    )
    op.execute("UPDATE falcon.fold SET fact_id = event_id")


def downgrade() -> None:
    """Drops it."""
    op.drop_column("fold", "fact_id", schema="falcon")
