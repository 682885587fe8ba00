"""Breaches of SLAs, and how far SLAs are evaluated; when instances started and succeeded first."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

SCHEMA = "falcon"
_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates tables and columns; of older instances the last start and success are the first that is known."""
    op.create_table(
        "sla_breaches",
        sa.Column("kind", sa.Text, primary_key=True, comment="feed or process"),
        sa.Column("entity", sa.Text, primary_key=True),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("level", sa.Text, primary_key=True, comment="low, high, should_start_in or should_end_in"),
        sa.Column("instance", _INSTANT, primary_key=True),
        sa.Column("deadline", _INSTANT, nullable=False, comment="when it was breached"),
        sa.Column("recorded_at", _INSTANT, nullable=False, comment="on the falcon clock"),
        sa.Column("state", sa.Text, nullable=False, comment="OPEN, MET or WITHDRAWN"),
        sa.Column("cleared_at", _INSTANT, comment="on the falcon clock; null: it is open"),
        schema=SCHEMA,
    )
    op.create_index(
        "ix_sla_breaches_open",
        "sla_breaches",
        ["cluster", "kind", "entity", "instance"],
        schema=SCHEMA,
        postgresql_where=sa.text("state = 'OPEN'"),
    )
    op.create_table(
        "sla_progress",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("entity", sa.Text, primary_key=True),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("level", sa.Text, primary_key=True),
        sa.Column("judged", _INSTANT, nullable=False, comment="every instance before it is judged"),
        schema=SCHEMA,
    )
    op.create_table(
        "sla_evaluations",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("at", _INSTANT, nullable=False, comment="the last evaluation, on the falcon clock"),
        sa.Column("event_id", sa.BigInteger, nullable=False, comment="how far the ledger was folded then"),
        schema=SCHEMA,
    )
    for name, what in (("first_started", "started"), ("first_succeeded", "succeeded")):
        column = sa.Column(name, _INSTANT, comment=f"when it {what} first, on the falcon clock")
        op.add_column("process_instances", column, schema=SCHEMA)
    op.execute("UPDATE falcon.process_instances SET first_started = started")
    op.execute("UPDATE falcon.process_instances SET first_succeeded = ended WHERE state = 'SUCCEEDED'")


def downgrade() -> None:
    """Drops them."""
    for name in ("first_succeeded", "first_started"):
        op.drop_column("process_instances", name, schema=SCHEMA)
    for name in ("sla_evaluations", "sla_progress", "sla_breaches"):
        op.drop_table(name, schema=SCHEMA)
