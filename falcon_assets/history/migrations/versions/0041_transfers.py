"""Imports from datasources, and exports to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0041"
down_revision = "0040"

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the table; nothing was transferred until now."""
    op.create_table(
        "transfers",
        sa.Column("process", sa.Text, primary_key=True, comment="the import or export"),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("nominal", _INSTANT, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False, comment="import or export"),
        sa.Column("datasource", sa.Text, nullable=False),
        sa.Column("dataset", sa.Text, nullable=False, comment="the table, query, path or topic"),
        sa.Column("at", _INSTANT, nullable=False, comment="on the falcon clock"),
        sa.Column("rows", sa.BigInteger, comment="null: not counted"),
        sa.Column(
            "low_watermark", sa.Text, comment="from where changes were read; null: from the beginning, or all was read"
        ),
        sa.Column(
            "high_watermark",
            sa.Text,
            comment="up to where, from where the next instance goes on; null: all was read",
        ),
        sa.Column("execution", sa.Text, comment="identifies the delivery at the target"),
        sa.Column("source_columns", JSONB, nullable=False, comment="name and type of the columns of the source"),
        sa.Column("event_id", sa.BigInteger, nullable=False),
        schema="falcon",
    )


def downgrade() -> None:
    """Drops it; the events in Dagster's log stay."""
    op.drop_table("transfers", schema="falcon")
