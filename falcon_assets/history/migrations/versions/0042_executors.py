"""Executors: whether they answer, and on which one an instance ran."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0042"
down_revision = "0041"

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the table; nothing is known of any executor, nor where instances ran until now."""
    op.create_table(
        "executors",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column(
            "endpoint", sa.Text, nullable=False, comment="what the rest is about; of another one nothing is known"
        ),
        sa.Column("failures", sa.Integer, nullable=False, comment="probes in a row without an answer"),
        sa.Column("problem", sa.Text, nullable=False, comment="why the last probe had no answer; empty: it had"),
        sa.Column("since", _INSTANT, comment="when it began to answer, or not to, in real time; null: not asked yet"),
        sa.Column("probed_at", _INSTANT, comment="the last probe, in real time; null: none yet"),
        sa.Column("probe_at", _INSTANT, comment="the next probe, in real time; null: at once"),
        sa.Column("cores", sa.Integer, comment="by Spark; null: not known, as the following"),
        sa.Column("free_cores", sa.Integer),
        sa.Column("waiting", sa.Integer, comment="applications that wait for cores"),
        sa.Column("own_cores", sa.Integer, comment="cores of our runs at that time"),
        sa.Column("told", sa.Text, nullable=False, comment="the health that receivers know; empty: none"),
        sa.Column("reserved", JSONB, nullable=False, comment="runs that are about to exist: key -> time, job, slots"),
        schema="falcon",
    )
    column = sa.Column("executor", sa.Text, comment="the executor that it ran on last; null: not recorded")
    op.add_column("process_instances", column, schema="falcon")


def downgrade() -> None:
    """Drops them; the events in Dagster's log stay."""
    op.drop_column("process_instances", "executor", schema="falcon")
    op.drop_table("executors", schema="falcon")
