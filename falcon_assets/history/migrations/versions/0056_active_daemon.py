"""Which daemon is active, of several with one database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0056"
down_revision = "0055"


def upgrade() -> None:
    """Adds the table; it is empty."""
    op.create_table(
        "daemon",
        sa.Column("only", sa.Boolean, primary_key=True, comment="true: there is one row"),
        sa.Column(
            "term",
            sa.BigInteger,
            nullable=False,
            comment="one more each time that another daemon becomes the active one",
        ),
        sa.Column("host", sa.Text, nullable=False, comment="of the daemon that was active last"),
        sa.Column("process", sa.Integer, nullable=False, comment="its number on that host"),
        sa.Column(
            "since",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="when it became active, by the database's clock",
        ),
        schema="falcon",
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_table("daemon", schema="falcon")
