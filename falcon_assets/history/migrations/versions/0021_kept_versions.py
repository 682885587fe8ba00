"""Versions of feed instances that were replaced and are kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

SCHEMA = "falcon"


def upgrade() -> None:
    """Creates the table; no feed has kept versions until now."""
    instant = sa.DateTime(timezone=True)
    op.create_table(
        "kept_versions",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("instance", instant, primary_key=True),
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("path", sa.Text, nullable=False, comment="where it lies"),
        sa.Column("replaced_at", instant, nullable=False, comment="when it was, on the falcon clock"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_table("kept_versions", schema=SCHEMA)
