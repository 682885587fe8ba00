"""Lifecycle statuses of versions of feed instances."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

SCHEMA = "falcon"


def upgrade() -> None:
    """Creates the table; every version has the status that its feed declares."""
    instant = sa.DateTime(timezone=True)
    op.create_table(
        "version_lifecycle",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("instance", instant, primary_key=True),
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("status", sa.Text, nullable=False, comment="initial, test, validated or critical"),
        sa.Column("at", instant, nullable=False, comment="when it was set, on the falcon clock"),
        sa.Column("actor", sa.Text, nullable=False, comment="who set it"),
        sa.Column("reason", sa.Text, nullable=False, comment="in the words of who set it"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_table("version_lifecycle", schema=SCHEMA)
