"""Outputs of processes that failed a check, and were not published."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0040"
down_revision = "0039"

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the table; nothing was held until now."""
    op.create_table(
        "quality_held",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("instance", _INSTANT, primary_key=True),
        sa.Column("place", sa.Text, nullable=False, comment="where it lies, unpublished"),
        sa.Column("process", sa.Text, nullable=False, comment="the process that computed it"),
        sa.Column("at", _INSTANT, nullable=False, comment="on the falcon clock"),
        sa.Column("records", sa.BigInteger, comment="rows; null: not counted"),
        sa.Column("checks", JSONB, nullable=False, comment="what each check found, in the order of the definition"),
        sa.Column("accepted_by", sa.Text, comment="who lets the next output pass; null: nobody"),
        sa.Column("accepted_at", _INSTANT, comment="on the falcon clock"),
        sa.Column("accepted_reason", sa.Text),
        schema="falcon",
    )


def downgrade() -> None:
    """Drops it; the events in Dagster's log stay."""
    op.drop_table("quality_held", schema="falcon")
