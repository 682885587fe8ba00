"""Collectors: passes over old instances, those that are not complete, and what was pushed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

SCHEMA = "falcon"
INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates three tables; all of them may begin empty."""
    op.create_table(
        "passes",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("template", sa.Text, nullable=False, comment="of the paths: another one is looked through anew"),
        sa.Column("began", INSTANT, comment="when the present pass began, in real time; null: none is under way"),
        sa.Column("folder", sa.Text, nullable=False, comment="the last one that the present pass looked through"),
        sa.Column("lists_all", sa.Boolean, nullable=False, comment="whether the present pass lists unchanged ones too"),
        sa.Column("before", INSTANT, comment="when the last complete pass began, in real time"),
        sa.Column("all_before", INSTANT, comment="when the last complete pass that listed all began, in real time"),
        schema=SCHEMA,
    )
    op.create_table(
        "incomplete",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("instance", INSTANT, primary_key=True),
        schema=SCHEMA,
    )
    op.create_table(
        "pushed",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("partition", sa.Text, primary_key=True, comment="as it was pushed; empty: none was named"),
        sa.Column("event_id", sa.BigInteger, nullable=False, comment="of Dagster's latest event that pushed it"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops them; pushes that were not answered are forgotten."""
    for table in ("pushed", "incomplete", "passes"):
        op.drop_table(table, schema=SCHEMA)
