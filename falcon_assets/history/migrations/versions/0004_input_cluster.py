"""Replication: on which cluster an input was read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

SCHEMA = "falcon"
COMMENT = "where it was read: replications read another cluster"


def upgrade() -> None:
    """Adds the column; until now everything was read where it was processed."""
    op.add_column("consumed", sa.Column("input_cluster", sa.Text, comment=COMMENT), schema=SCHEMA)
    consumed = sa.table("consumed", sa.column("cluster", sa.Text), sa.column("input_cluster", sa.Text), schema=SCHEMA)
    op.execute(sa.update(consumed).values(input_cluster=consumed.c.cluster))
    op.alter_column("consumed", "input_cluster", nullable=False, schema=SCHEMA)
    _index("input_cluster")


def downgrade() -> None:
    """Takes it away again, and what replications read with it."""
    consumed = sa.table("consumed", sa.column("cluster", sa.Text), sa.column("input_cluster", sa.Text), schema=SCHEMA)
    op.execute(sa.delete(consumed).where(consumed.c.cluster != consumed.c.input_cluster))
    _index("cluster")
    op.drop_column("consumed", "input_cluster", schema=SCHEMA)


def _index(cluster: str) -> None:
    op.drop_index("ix_consumed_feed", "consumed", schema=SCHEMA)
    op.create_index("ix_consumed_feed", "consumed", [cluster, "feed", "instance"], schema=SCHEMA)
