"""When coordinators looked at workloads: nobody times out while nobody looks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"

SCHEMA = "falcon"


def upgrade() -> None:
    """Adds the table; what waits when it is made waits anew."""
    op.create_table(
        "looks",
        sa.Column("process", sa.Text, primary_key=True),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("last", sa.DateTime(timezone=True), nullable=False, comment="the last look, on the falcon clock"),
        sa.Column("woke", sa.DateTime(timezone=True), comment="the look that ended the last long pause"),
        sa.Column("slept", sa.DateTime(timezone=True), comment="the look before that pause; null: none"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_table("looks", schema=SCHEMA)
