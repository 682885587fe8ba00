"""Verdicts about versions of instances, and attempts to check them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0035"
down_revision = "0034"

SCHEMA = "falcon"
_INSTANT = sa.DateTime(timezone=True)


def _key() -> list[sa.Column[object]]:
    names = ("cluster", "feed", "instance", "version")
    return [sa.Column(name, _INSTANT if name == "instance" else sa.Text, primary_key=True) for name in names]


def upgrade() -> None:
    """Makes the tables; nothing was checked until now."""
    op.create_table(
        "quality_verdicts",
        *_key(),
        sa.Column("verdict", sa.Text, nullable=False, comment="VALID or INVALID, as the checks say"),
        sa.Column("checked_at", _INSTANT, nullable=False, comment="on the falcon clock"),
        sa.Column("event_id", sa.BigInteger, nullable=False, comment="of Dagster's event that brought it"),
        sa.Column("suite", sa.Text, nullable=False, comment="which checks were measured: quick or full"),
        sa.Column("records", sa.BigInteger, comment="rows; null: not counted"),
        sa.Column("checks", JSONB, nullable=False, comment="what each check found, in the order of the definition"),
        sa.Column("profile", JSONB, comment="figures of each column; null: not taken"),
        sa.Column("accepted_by", sa.Text, comment="who overruled it; null: nobody"),
        sa.Column("accepted_at", _INSTANT, comment="on the falcon clock"),
        sa.Column("accepted_reason", sa.Text),
        schema=SCHEMA,
    )
    op.create_table(
        "quality_attempts",
        *_key(),
        sa.Column("attempts", sa.Integer, nullable=False, comment="to check it, all without a verdict"),
        sa.Column("retry_at", _INSTANT, nullable=False, comment="when the next begins, in real time"),
        sa.Column("problem", sa.Text, nullable=False, comment="why the last one failed; empty: it has not ended"),
        schema=SCHEMA,
    )
    op.create_index("ix_feed_instances_seen", "feed_instances", ["cluster", "feed", "seen_at"], schema=SCHEMA)


def downgrade() -> None:
    """Takes them away; the events in Dagster's log stay."""
    op.drop_index("ix_feed_instances_seen", "feed_instances", schema=SCHEMA)
    op.drop_table("quality_attempts", schema=SCHEMA)
    op.drop_table("quality_verdicts", schema=SCHEMA)
