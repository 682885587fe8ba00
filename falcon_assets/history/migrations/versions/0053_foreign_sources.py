"""Sources of other colos, whose installations have databases of their own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0047"

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Adds the tables; the next ticks of the collectors fill them."""
    op.create_table(
        "served",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column(
            "at", _INSTANT, nullable=False, comment="when its own collector was at work last, by the database's clock"
        ),
        schema="falcon",
    )
    op.create_table(
        "source_problems",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("at", _INSTANT, nullable=False, comment="of the last look in vain, on the falcon clock"),
        sa.Column("problem", sa.Text, nullable=False, comment="why it was in vain"),
        schema="falcon",
    )


def downgrade() -> None:
    """Drops them."""
    for name in ("source_problems", "served"):
        op.drop_table(name, schema="falcon")
