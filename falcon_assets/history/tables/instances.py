"""Tables of the instances of feeds and processes: projections of Dagster's history."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Index, Integer, Numeric, Table, Text, text

from falcon_assets.history.tables.metadata import INSTANT, METADATA

FEED_INSTANCES = Table(
    "feed_instances",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
    Column("state", Text, nullable=False, comment="AVAILABLE or EVICTED"),
    Column("version", Text, nullable=False, comment="empty: none was seen before it was evicted"),
    Column("bytes", BigInteger),
    Column("records", BigInteger),
    Column("files", BigInteger),
    Column("signature", Text, comment="of the listing, where it landed from outside"),
    Column("landed_at", INSTANT, nullable=False, comment="when the first version was seen, on the falcon clock"),
    Column("seen_at", INSTANT, nullable=False, comment="when the present version was seen, on the falcon clock"),
    Column("previous_version", Text, comment="the version before the present one"),
    Column("changes", Integer, nullable=False, comment="how often the version changed after the first one"),
    Column("run_id", Text, comment="the run that published it; null: it landed from outside"),
    Column("event_id", BigInteger, nullable=False, comment="of Dagster's latest event about it"),
    Column("version_event", BigInteger, nullable=False, comment="of Dagster's event that brought the present version"),
    Column("late", Boolean, nullable=False, comment="whether a late rerun published the present version"),
    Column("evicted_at", INSTANT, comment="EVICTED: when, on the falcon clock"),
    Column("evicted_by", Text, comment="EVICTED: the run that did it"),
    Column("evicted_bytes", BigInteger, comment="EVICTED: how much it was, statistics and metadata included"),
    Column("looked_before", INSTANT, comment="the look before seen_at, where it landed: it came between the two"),
)
Index("ix_feed_instances_event", FEED_INSTANCES.c.event_id)
Index(
    "ix_feed_instances_state",
    FEED_INSTANCES.c.cluster,
    FEED_INSTANCES.c.feed,
    FEED_INSTANCES.c.state,
    FEED_INSTANCES.c.instance,
)

PROCESS_INSTANCES = Table(
    "process_instances",
    METADATA,
    Column("process", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("nominal", INSTANT, primary_key=True),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("reason_data", JSON(none_as_null=True), comment="the reason for programs, where a rule says it"),
    Column("attempt", Integer, nullable=False, comment="how many runs it was given to"),
    Column("failures", Integer, nullable=False, comment="FAILED or TIMED_OUT in a row"),
    Column("queued_run", Text, comment="the run that carries it and has not started it yet"),
    Column("run_id", Text, comment="the run that started it last"),
    Column("started", INSTANT),
    Column("ended", INSTANT),
    Column("event_id", BigInteger, nullable=False, comment="of Dagster's latest event about it"),
    Column("started_event", BigInteger, comment="of Dagster's event by which it started last"),
    Column("definition", Integer, comment="the version that it ran with last; null: not recorded"),
    Column("deaths", Integer, nullable=False, server_default="0", comment="how often in a row its run was killed"),
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
    Column("input", Text, primary_key=True),
    Column("feed", Text, nullable=False),
    Column("instance", INSTANT, primary_key=True),
    Column("version", Text, comment="null: it was not there (an optional input)"),
    Column("read_event", BigInteger, nullable=False, comment="of Dagster's event after which it was read; 0: unknown"),
    Column("too_late", Text, comment="a later version that was said to have come too late"),
    Column("stale", Boolean, nullable=False, comment="whether there is another version now, not said to be too late"),
    Column("input_cluster", Text, nullable=False, comment="where it was read: replications read another cluster"),
)
"""The versions that each process instance read in its last success."""
Index("ix_consumed_feed", CONSUMED.c.input_cluster, CONSUMED.c.feed, CONSUMED.c.instance)
Index("ix_consumed_stale", CONSUMED.c.cluster, CONSUMED.c.process, CONSUMED.c.input, postgresql_where=CONSUMED.c.stale)

FOLD = Table(
    "fold",
    METADATA,
    Column("only", Boolean, primary_key=True, comment="true: there is one row"),
    Column("event_id", BigInteger, nullable=False, comment="the latest event of Dagster's that is folded in"),
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
