"""Retention: which feed instances were evicted, and what was decided on."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

SCHEMA = "falcon"
INSTANT = sa.DateTime(timezone=True)
COMMENTS = {
    "state": ("AVAILABLE", "AVAILABLE or EVICTED"),
    "version": (None, "empty: none was seen before it was evicted"),
}


def upgrade() -> None:
    """Adds columns and a table; nothing was evicted before, so the projection stays as it is."""
    for column, (before, after) in COMMENTS.items():
        _comment(column, after, before)
    for added in _new_columns():
        op.add_column("feed_instances", added, schema=SCHEMA)
    op.create_index(
        "ix_feed_instances_evicted",
        "feed_instances",
        ["cluster", "feed", "instance"],
        schema=SCHEMA,
        postgresql_where=sa.text("state = 'EVICTED'"),
    )
    op.create_table(
        "evictions",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("instance", INSTANT, primary_key=True),
        sa.Column("action", sa.Text, nullable=False, comment="delete or archive"),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column(
            "locations", sa.JSON, nullable=False, comment="kind, path and fixed prefix of all that goes, data first"
        ),
        sa.Column("flag", sa.Text, comment="name of the availability flag"),
        sa.Column("archive_cluster", sa.Text, comment="archive: null = the same cluster"),
        sa.Column("archive_to", sa.Text, comment="archive: the path of the data"),
        sa.Column("files", sa.BigInteger, nullable=False, comment="how many there were at the decision"),
        sa.Column("bytes", sa.BigInteger, nullable=False, comment="how much it was at the decision"),
        sa.Column("run_id", sa.Text, nullable=False, comment="the run that decided it"),
        sa.Column("decided_at", INSTANT, nullable=False, comment="on the falcon clock"),
        sa.Column("done_at", INSTANT, comment="on the falcon clock; null: not all of it has gone"),
        schema=SCHEMA,
    )
    op.create_index(
        "ix_evictions_open",
        "evictions",
        ["cluster", "feed"],
        schema=SCHEMA,
        postgresql_where=sa.text("done_at IS NULL"),
    )


def downgrade() -> None:
    """Takes them away again; what was evicted is not available, so it is forgotten."""
    op.drop_table("evictions", schema=SCHEMA)
    op.drop_index("ix_feed_instances_evicted", "feed_instances", schema=SCHEMA)
    table = sa.table("feed_instances", sa.column("state", sa.Text), schema=SCHEMA)
    op.execute(sa.delete(table).where(table.c.state == "EVICTED"))
    for column in _new_columns():
        op.drop_column("feed_instances", column.name, schema=SCHEMA)
    for name, (before, after) in COMMENTS.items():
        _comment(name, before, after)


def _comment(column: str, comment: str | None, existing: str | None) -> None:
    op.alter_column(
        "feed_instances",
        column,
        existing_type=sa.Text,
        existing_nullable=False,
        comment=comment,
        existing_comment=existing,
        schema=SCHEMA,
    )


def _new_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("evicted_at", INSTANT, comment="EVICTED: when, on the falcon clock"),
        sa.Column("evicted_by", sa.Text, comment="EVICTED: the run that did it"),
        sa.Column("evicted_bytes", sa.BigInteger, comment="EVICTED: how much it was, statistics and metadata included"),
    ]
