"""Who did what, when, to what, with what result."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0013"
down_revision = "0012"

SCHEMA = "falcon"


def upgrade() -> None:
    """Creates the table."""
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, comment="on the falcon clock"),
        sa.Column("recorded", sa.DateTime(timezone=True), nullable=False, comment="in real time"),
        sa.Column("principal", sa.Text, nullable=False, comment="who asked"),
        sa.Column("os_user", sa.Text, nullable=False, comment="the user of the process that did it"),
        sa.Column("way", sa.Text, nullable=False, comment="cli, api or job"),
        sa.Column("operation", sa.Text, nullable=False),
        sa.Column("entities", JSONB, nullable=False, comment="kind and name of each that it was about"),
        sa.Column("instances", sa.Integer, comment="how many it was about; null: it was about entities"),
        sa.Column("first", sa.DateTime(timezone=True), comment="of the instances"),
        sa.Column("last", sa.DateTime(timezone=True), comment="of the instances"),
        sa.Column("reason", sa.Text, nullable=False, comment="in the words of who asked"),
        sa.Column("result", sa.Text, nullable=False, comment="done, unchanged, denied or failed"),
        sa.Column("message", sa.Text, nullable=False, comment="why it was denied or failed"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops it."""
    op.drop_table("audit", schema=SCHEMA)
