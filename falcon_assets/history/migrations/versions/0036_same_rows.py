"""Versions with the same rows, before and after compaction."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"

SCHEMA = "falcon"


def upgrade() -> None:
    """Adds the column; nothing was compacted until now."""
    comment = "other versions with the same rows, before and after compaction"
    op.add_column("feed_instances", sa.Column("same_rows", sa.Text, comment=comment), schema=SCHEMA)


def downgrade() -> None:
    """Takes it away."""
    op.drop_column("feed_instances", "same_rows", schema=SCHEMA)
