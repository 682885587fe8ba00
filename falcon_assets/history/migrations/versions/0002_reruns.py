"""Late data: which consumed versions are stale, what came too late, and the requests to rerun instances."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

SCHEMA = "falcon"
INSTANT = sa.DateTime(timezone=True)
PROJECTION = ("feed_instances", "process_instances", "consumed", "fold", "progress")
OPEN = "queued_run IS NOT NULL OR state NOT IN ('SUCCEEDED', 'SKIPPED', 'KILLED')"
FAILURES = {"before": "in a row, since it succeeded last", "after": "FAILED or TIMED_OUT in a row"}


def upgrade() -> None:
    """Adds columns and a table; the projection is emptied, for the next look folds all of history in again."""
    _empty_projection()
    for table, columns in _new_columns().items():
        for column in columns:
            op.add_column(table, column, schema=SCHEMA)
    _comment_failures(FAILURES["after"], FAILURES["before"])
    op.create_index(
        "ix_process_instances_open",
        "process_instances",
        ["cluster", "process"],
        schema=SCHEMA,
        postgresql_where=sa.text(OPEN),
    )
    op.create_index(
        "ix_consumed_stale",
        "consumed",
        ["cluster", "process", "input"],
        schema=SCHEMA,
        postgresql_where=sa.text("stale"),
    )
    op.create_table(
        "reruns",
        sa.Column("process", sa.Text, primary_key=True),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("nominal", INSTANT, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False, comment="late: its input changed"),
        sa.Column("cause", sa.JSON, nullable=False, comment="late: the changes, as the record of the rerun shows them"),
        sa.Column("attempt", sa.Integer, nullable=False, comment="of the instance when it was asked for"),
        sa.Column("failures", sa.Integer, nullable=False, comment="of the instance when it was asked for"),
        sa.Column("requested_at", INSTANT, nullable=False, comment="on the falcon clock"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Takes them away again, and the requests with them."""
    op.drop_table("reruns", schema=SCHEMA)
    op.drop_index("ix_process_instances_open", "process_instances", schema=SCHEMA)
    _comment_failures(FAILURES["before"], FAILURES["after"])
    for table, columns in _new_columns().items():
        for column in columns:
            op.drop_column(table, column.name, schema=SCHEMA)
    _empty_projection()


def _comment_failures(comment: str, existing: str) -> None:
    op.alter_column(
        "process_instances",
        "failures",
        existing_type=sa.Integer,
        existing_nullable=False,
        comment=comment,
        existing_comment=existing,
        schema=SCHEMA,
    )


def _empty_projection() -> None:
    for table in PROJECTION:
        op.execute(sa.delete(sa.table(table, schema=SCHEMA)))


def _new_columns() -> dict[str, list[sa.Column[Any]]]:
    return {
        "feed_instances": [
            sa.Column(
                "version_event",
                sa.BigInteger,
                nullable=False,
                comment="of Dagster's event that brought the present version",
            ),
            sa.Column("late", sa.Boolean, nullable=False, comment="whether a late rerun published the present version"),
        ],
        "process_instances": [
            sa.Column("started_event", sa.BigInteger, comment="of Dagster's event by which it started last"),
        ],
        "consumed": [
            sa.Column(
                "read_event",
                sa.BigInteger,
                nullable=False,
                comment="of Dagster's event after which it was read; 0: unknown",
            ),
            sa.Column("too_late", sa.Text, comment="a later version that was said to have come too late"),
            sa.Column(
                "stale",
                sa.Boolean,
                nullable=False,
                comment="whether there is another version now, not said to be too late",
            ),
        ],
    }
