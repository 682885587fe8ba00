"""Versions of feed instances, and which came from which."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

SCHEMA = "falcon"
_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the tables; ``falcon ledger rebuild`` brings in what happened before."""
    op.create_table(
        "data_versions",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("instance", _INSTANT, primary_key=True),
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("id", sa.BigInteger, nullable=False, comment="numbered as history mentions them"),
        sa.Column("event_id", sa.BigInteger, nullable=False, comment="of Dagster's event that brought it last"),
        sa.Column("status", sa.Text, nullable=False, comment="AVAILABLE, REPLACED, EVICTED or READ"),
        sa.Column("seen_at", _INSTANT, comment="since when it was there, on the falcon clock; null: it was only read"),
        sa.Column("ended_at", _INSTANT, comment="when it was replaced or evicted, on the falcon clock"),
        sa.Column("ended_by", sa.Text, comment="the run that replaced or evicted it"),
        sa.Column("archived_to", sa.Text, comment="EVICTED: where it was archived; null: it was deleted"),
        sa.Column("path", sa.Text),
        sa.Column("bytes", sa.BigInteger),
        sa.Column("records", sa.BigInteger),
        sa.Column("files", sa.BigInteger),
        sa.Column("process", sa.Text, comment="which made it; null: it landed from outside"),
        sa.Column("nominal", _INSTANT, comment="the instance of the process"),
        sa.Column("run_id", sa.Text, comment="the run that made it last"),
        sa.Column("attempt", sa.Integer, comment="of the instance of the process"),
        sa.Column("definition", sa.Integer, comment="the version that it was made with; null: not recorded"),
        sa.Column("late", sa.Boolean, nullable=False, comment="whether a late rerun made it"),
        schema=SCHEMA,
    )
    op.create_index("ix_data_versions_id", "data_versions", ["id"], schema=SCHEMA, unique=True)
    op.create_index("ix_data_versions_feed", "data_versions", ["feed", "instance"], schema=SCHEMA)
    op.create_table(
        "version_edges",
        sa.Column("output", sa.BigInteger, primary_key=True, autoincrement=False, comment="the version that was made"),
        sa.Column("input", sa.BigInteger, primary_key=True, autoincrement=False, comment="a version it was made from"),
        sa.Column("process", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, comment="the run that did so last"),
        sa.Column("definition", sa.Integer, comment="the version that it ran with; null: not recorded"),
        sa.Column("declared", sa.Boolean, nullable=False, comment="whether it is an input of the definition"),
        schema=SCHEMA,
    )
    op.create_index("ix_version_edges_input", "version_edges", ["input", "output"], schema=SCHEMA)


def downgrade() -> None:
    """Drops them."""
    op.drop_table("version_edges", schema=SCHEMA)
    op.drop_table("data_versions", schema=SCHEMA)
