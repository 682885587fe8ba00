"""The ledger: instances of feeds and processes, what was consumed, entity status, the cursors."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

SCHEMA = "falcon"
INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "feed_instances",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("instance", INSTANT, primary_key=True),
        sa.Column("state", sa.Text, nullable=False, comment="AVAILABLE"),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("bytes", sa.BigInteger),
        sa.Column("records", sa.BigInteger),
        sa.Column("files", sa.BigInteger),
        sa.Column("signature", sa.Text, comment="of the listing, where it landed from outside"),
        sa.Column("landed_at", INSTANT, nullable=False, comment="when the first version was seen, on the falcon clock"),
        sa.Column("seen_at", INSTANT, nullable=False, comment="when the present version was seen, on the falcon clock"),
        sa.Column("previous_version", sa.Text, comment="the version before the present one"),
        sa.Column("changes", sa.Integer, nullable=False, comment="how often the version changed after the first one"),
        sa.Column("run_id", sa.Text, comment="the run that published it; null: it landed from outside"),
        sa.Column("event_id", sa.BigInteger, nullable=False, comment="of Dagster's latest event about it"),
        schema=SCHEMA,
    )
    op.create_index("ix_feed_instances_event", "feed_instances", ["event_id"], schema=SCHEMA)
    op.create_table(
        "process_instances",
        sa.Column("process", sa.Text, primary_key=True),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("nominal", INSTANT, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False, comment="how many runs it was given to"),
        sa.Column("failures", sa.Integer, nullable=False, comment="in a row, since it succeeded last"),
        sa.Column("queued_run", sa.Text, comment="the run that carries it and has not started it yet"),
        sa.Column("run_id", sa.Text, comment="the run that started it last"),
        sa.Column("started", INSTANT),
        sa.Column("ended", INSTANT),
        sa.Column("event_id", sa.BigInteger, nullable=False, comment="of Dagster's latest event about it"),
        schema=SCHEMA,
    )
    op.create_index("ix_process_instances_queued_run", "process_instances", ["queued_run"], schema=SCHEMA)
    op.create_index("ix_process_instances_run", "process_instances", ["run_id"], schema=SCHEMA)
    op.create_index("ix_process_instances_event", "process_instances", ["event_id"], schema=SCHEMA)
    op.create_table(
        "consumed",
        sa.Column("process", sa.Text, primary_key=True),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("nominal", INSTANT, primary_key=True),
        sa.Column("input", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, nullable=False),
        sa.Column("instance", INSTANT, primary_key=True),
        sa.Column("version", sa.Text, comment="null: it was not there (an optional input)"),
        schema=SCHEMA,
    )
    op.create_index("ix_consumed_feed", "consumed", ["cluster", "feed", "instance"], schema=SCHEMA)
    op.create_table(
        "fold",
        sa.Column("only", sa.Boolean, primary_key=True, comment="true: there is one row"),
        sa.Column("event_id", sa.BigInteger, nullable=False, comment="the latest event of Dagster's that is folded in"),
        schema=SCHEMA,
    )
    op.create_table(
        "entity_status",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("status", sa.Text, nullable=False, comment="SUBMITTED, RUNNING or SUSPENDED"),
        sa.Column("since", INSTANT, nullable=False, comment="on the falcon clock"),
        sa.Column(
            "commanded", sa.Boolean, nullable=False, comment="by a person; false: by schedule: in the definition"
        ),
        schema=SCHEMA,
    )
    op.create_table(
        "collected",
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("feed", sa.Text, primary_key=True),
        sa.Column("looked_at", INSTANT, comment="the last complete look at the feed, on the falcon clock"),
        schema=SCHEMA,
    )
    op.create_table(
        "progress",
        sa.Column("process", sa.Text, primary_key=True),
        sa.Column("cluster", sa.Text, primary_key=True),
        sa.Column("timeline", sa.Text, primary_key=True, comment="of the process: another one starts anew"),
        sa.Column("first_open", INSTANT, nullable=False, comment="every instance before it is settled"),
        schema=SCHEMA,
    )


def downgrade() -> None:
    """Drops the tables; the projection comes back by a rebuild, the entities' status does not."""
    for table in ("progress", "collected", "entity_status", "fold", "consumed", "process_instances", "feed_instances"):
        op.drop_table(table, schema=SCHEMA)
