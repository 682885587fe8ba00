"""Deliveries to datasources."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the table; nothing was delivered until now."""
    op.create_table(
        "deliveries",
        sa.Column("process", sa.Text, primary_key=True, comment="the export"),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("nominal", _INSTANT, primary_key=True),
        sa.Column("event_id", sa.BigInteger, primary_key=True, comment="of Dagster's event that recorded it"),
        sa.Column("feed", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False, comment="what was sent"),
        sa.Column("datasource", sa.Text, nullable=False),
        sa.Column("dataset", sa.Text, nullable=False, comment="the table, resource or topic that it was sent to"),
        sa.Column("execution", sa.Text, nullable=False, comment="identifies the delivery at the target"),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("at", _INSTANT, nullable=False, comment="on the falcon clock"),
        sa.Column("run_id", sa.Text),
        schema="falcon",
    )
    op.create_index("ix_deliveries_version", "deliveries", ["feed", "nominal", "cluster", "version"], schema="falcon")


def downgrade() -> None:
    """Drops it; the events in Dagster's log stay."""
    op.drop_table("deliveries", schema="falcon")
