"""Tables of the instances of feeds and processes: projections of Dagster's history."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ColumnElement, Index, Numeric, Table, Text, and_, func, text

from falcon_assets.history.tables.ledger_schema import INSTANT, METADATA, columns_of
from falcon_assets.history.tables.row_values import Consumed, FeedInstanceRow
from falcon_assets.planning.instance_record import InstanceRecord

FEED_INSTANCES = Table(
    "feed_instances",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
    *columns_of(FeedInstanceRow),
)
Index("ix_feed_instances_event", FEED_INSTANCES.c.event_id)
Index("ix_feed_instances_seen", FEED_INSTANCES.c.cluster, FEED_INSTANCES.c.feed, FEED_INSTANCES.c.seen_at)
Index(
    "ix_feed_instances_state",
    FEED_INSTANCES.c.cluster,
    FEED_INSTANCES.c.feed,
    FEED_INSTANCES.c.state,
    FEED_INSTANCES.c.instance,
)


def has_other_rows(version: ColumnElement[str | None]) -> ColumnElement[bool]:
    """Whether the present version of a feed instance has other rows than that one; null: it has those of none."""
    there = FEED_INSTANCES.c
    known = func.strpos(func.coalesce(there.same_rows, ""), func.coalesce(version, "none"))
    return and_(there.version.is_distinct_from(version), known == 0)


PROCESS_INSTANCES = Table(
    "process_instances",
    METADATA,
    Column("process", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    *columns_of(InstanceRecord, "nominal"),
    Column("event_id", BigInteger, nullable=False, comment="of Dagster's latest event about it"),
    Column("started_event", BigInteger, comment="of Dagster's event by which it started last"),
    Column("first_started", INSTANT, comment="when it started first, on the falcon clock"),
    Column("first_succeeded", INSTANT, comment="when it succeeded first, on the falcon clock"),
)
"""One row per process instance that a run was given, or that timed out or was skipped. Others are pending."""
Index("ix_process_instances_queued_run", PROCESS_INSTANCES.c.queued_run)
Index("ix_process_instances_run", PROCESS_INSTANCES.c.run_id)
Index("ix_process_instances_event", PROCESS_INSTANCES.c.event_id)
Index(
    "ix_process_instances_state",
    PROCESS_INSTANCES.c.process,
    PROCESS_INSTANCES.c.cluster,
    PROCESS_INSTANCES.c.state,
    PROCESS_INSTANCES.c.nominal,
)

OPEN = text("queued_run IS NOT NULL OR state NOT IN ('SUCCEEDED', 'SKIPPED', 'KILLED')")
Index("ix_process_instances_open", PROCESS_INSTANCES.c.cluster, PROCESS_INSTANCES.c.process, postgresql_where=OPEN)

CONSUMED = Table(
    "consumed",
    METADATA,
    Column("process", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("nominal", INSTANT, primary_key=True),
    *columns_of(Consumed, "input", "instance"),
    Column("stale", Boolean, nullable=False, comment="whether there is another version now, not said to be too late"),
)
"""The versions that each process instance read in its last success."""
Index("ix_consumed_feed", CONSUMED.c.input_cluster, CONSUMED.c.feed, CONSUMED.c.instance)
Index("ix_consumed_stale", CONSUMED.c.cluster, CONSUMED.c.process, CONSUMED.c.input, postgresql_where=CONSUMED.c.stale)

FOLD = Table(
    "fold",
    METADATA,
    Column("only", Boolean, primary_key=True, comment="true: there is one row"),
    Column("event_id", BigInteger, nullable=False, comment="the latest event of Dagster's that is folded in"),
    Column(
        "fact_id",
        BigInteger,
        nullable=False,
        server_default="0",
        comment="the latest of them that said something about what the ledger keeps",
    ),
)

PUSHED = Table(
    "pushed",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("partition", Text, primary_key=True, comment="as it was pushed; empty: none was named"),
    Column("event_id", BigInteger, nullable=False, comment="of Dagster's latest event that pushed it"),
)
"""Partitions that were announced from outside, and that a collector has to check."""

TOTALS = Table(
    "totals",
    METADATA,
    Column("what", Text, primary_key=True, comment="feed or process: instances; copied_bytes, evicted_bytes"),
    Column("entity", Text, primary_key=True, comment="a feed, a process or a replication"),
    Column("cluster", Text, primary_key=True),
    Column("label", Text, primary_key=True, comment="the state; evicted_bytes: what was done; else empty"),
    Column("number", Numeric, nullable=False),
)
"""Numbers of instances by state, and bytes copied and evicted, without counting rows."""
