"""The roots of stores: one that went away is told from one that is empty."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"

SCHEMA = "falcon"


def upgrade() -> None:
    """Creates the table; roots that are in use get their row, and their mark, when they are looked at next."""
    op.create_table(
        "data_roots",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("place", sa.Text, primary_key=True, comment="the URL of the root"),
        sa.Column("mark", sa.Text, comment="what it carries; null: it may not be marked"),
        sa.Column("held", sa.Boolean, nullable=False, comment="whether anything was in it"),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False, comment="in real time"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_table("data_roots", schema=SCHEMA)
