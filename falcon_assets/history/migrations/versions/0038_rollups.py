"""Roll-ups: how far the passes over their members have come."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Creates the table; passes begin with the first event."""
    op.create_table(
        "rollup_progress",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("declared", sa.Text, nullable=False, comment="the roll-up and its members: another one starts anew"),
        sa.Column("event_id", sa.BigInteger, nullable=False, comment="the latest event of its members that was seen"),
        schema="falcon",
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_table("rollup_progress", schema="falcon")
