"""Which clock the history goes by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

SCHEMA = "falcon"


def upgrade() -> None:
    """Creates the table; whoever comes next writes the clock down."""
    op.create_table(
        "clock",
        sa.Column("only", sa.Boolean, primary_key=True, comment="true: there is one row"),
        sa.Column("tag", sa.Text, nullable=False, comment="the clock and its start; empty: the real one"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_table("clock", schema=SCHEMA)
