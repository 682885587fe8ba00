"""Tables of schedules, requests and decisions, and of the positions of sensors."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, Index, Integer, Table, Text, text

from falcon_assets.history.tables.ledger_schema import INSTANT, METADATA

ENTITY_STATUS = Table(
    "entity_status",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("status", Text, nullable=False, comment="SUBMITTED, RUNNING or SUSPENDED"),
    Column("since", INSTANT, nullable=False, comment="on the falcon clock"),
    Column("commanded", Boolean, nullable=False, comment="by a person; false: by schedule: in the definition"),
    Column("scheduled_since", INSTANT, comment="when it was scheduled first, on the falcon clock; null: never"),
)

RERUNS = Table(
    "reruns",
    METADATA,
    Column("process", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("nominal", INSTANT, primary_key=True),
    Column("kind", Text, nullable=False, comment="late: its input changed; rerun: a person asked for it"),
    Column("cause", JSON, nullable=False, comment="late: the changes, as the record of the rerun shows them"),
    Column("attempt", Integer, nullable=False, comment="of the instance when it was asked for"),
    Column("failures", Integer, nullable=False, comment="of the instance when it was asked for"),
    Column("requested_at", INSTANT, nullable=False, comment="on the falcon clock"),
    Column("late_workflow", Boolean, nullable=False, comment="rerun: with the workflow that late data has"),
    Column("use_latest", Boolean, nullable=False, comment="rerun: with the present definition"),
    Column("actor", Text, nullable=False, comment="rerun: who asked for it"),
    Column("reason", Text, nullable=False, comment="rerun: why"),
    Column("properties", JSON, nullable=False, comment="rerun: properties over those that are declared"),
)

EVICTIONS = Table(
    "evictions",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
    Column("action", Text, nullable=False, comment="delete or archive"),
    Column("reason", Text, nullable=False),
    Column("locations", JSON, nullable=False, comment="kind, path and fixed prefix of all that goes, data first"),
    Column("flag", Text, comment="name of the availability flag"),
    Column("archive_cluster", Text, comment="archive: null = the same cluster"),
    Column("archive_to", Text, comment="archive: the path of the data"),
    Column("archive_root", Text, comment="archive: URL of the root of the path; null = the cluster's own"),
    Column("files", BigInteger, nullable=False, comment="how many there were at the decision"),
    Column("bytes", BigInteger, nullable=False, comment="how much it was at the decision"),
    Column("run_id", Text, nullable=False, comment="the run that decided it"),
    Column("decided_at", INSTANT, nullable=False, comment="on the falcon clock"),
    Column("done_at", INSTANT, comment="on the falcon clock; null: not all of it has gone"),
    Column("expired_at", INSTANT, comment="archive: when it went from there, on the falcon clock; null: it did not"),
)
"""Decisions of retention, recorded before it deletes or moves anything."""
Index("ix_evictions_open", EVICTIONS.c.cluster, EVICTIONS.c.feed, postgresql_where=text("done_at IS NULL"))

COLLECTED = Table(
    "collected",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("looked_at", INSTANT, comment="the last complete look at the feed, on the falcon clock"),
)
"""Positions of collectors. They decide only how much is checked again."""

SERVED = Table(
    "served",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("at", INSTANT, nullable=False, comment="when its own collector was at work last, by the database's clock"),
)
"""Clusters that code locations with this database serve. Others are of installations with databases of their own."""

SOURCE_PROBLEMS = Table(
    "source_problems",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("at", INSTANT, nullable=False, comment="of the last look in vain, on the falcon clock"),
    Column("problem", Text, nullable=False, comment="why it was in vain"),
)
"""Feeds on clusters of other colos that could not be looked at the last time."""

PASSES = Table(
    "passes",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("template", Text, nullable=False, comment="of the paths: another one is looked through anew"),
    Column("began", INSTANT, comment="when the present pass began, in real time; null: none is under way"),
    Column("folder", Text, nullable=False, comment="the last one that the present pass looked through"),
    Column("lists_all", Boolean, nullable=False, comment="whether the present pass lists unchanged ones too"),
    Column("before", INSTANT, comment="when the last complete pass began, in real time"),
    Column("all_before", INSTANT, comment="when the last complete pass that listed all began, in real time"),
)
"""Positions of the collectors' passes over old instances. They decide only how much is checked again."""

INCOMPLETE = Table(
    "incomplete",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
)
"""Instances seen incomplete: their flag may appear without changing the modification time of the folder above."""

PROGRESS = Table(
    "progress",
    METADATA,
    Column("process", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("timeline", Text, primary_key=True, comment="of the process: another one starts anew"),
    Column("first_open", INSTANT, nullable=False, comment="every instance before it is settled"),
)
"""Positions of the coordinators. They decide only how much is checked again."""

ROLLUP_PROGRESS = Table(
    "rollup_progress",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("declared", Text, nullable=False, comment="the roll-up and its members: another one starts anew"),
    Column("event_id", BigInteger, nullable=False, comment="the latest event of its members that was seen"),
)
"""Positions of the passes over roll-ups. They decide only how much is checked again."""

LOOKS = Table(
    "looks",
    METADATA,
    Column("process", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("last", INSTANT, nullable=False, comment="the last look, on the falcon clock"),
    Column("woke", INSTANT, comment="the look that ended the last long pause"),
    Column("slept", INSTANT, comment="the look before that pause; null: none"),
)

CLOCK = Table(
    "clock",
    METADATA,
    Column("only", Boolean, primary_key=True, comment="true: there is one row"),
    Column("tag", Text, nullable=False, comment="the clock and its start; empty: the real one"),
)

DAEMON = Table(
    "daemon",
    METADATA,
    Column("only", Boolean, primary_key=True, comment="true: there is one row"),
    Column("term", BigInteger, nullable=False, comment="one more each time that another daemon becomes the active one"),
    Column("host", Text, nullable=False, comment="of the daemon that was active last"),
    Column("process", Integer, nullable=False, comment="its number on that host"),
    Column("since", INSTANT, nullable=False, comment="when it became active, by the database's clock"),
)

DATA_ROOTS = Table(
    "data_roots",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("place", Text, primary_key=True, comment="the URL of the root"),
    Column("mark", Text, comment="what it carries; null: it may not be marked"),
    Column("held", Boolean, nullable=False, comment="whether anything was in it"),
    Column("since", INSTANT, nullable=False, comment="in real time"),
)
"""Store roots in use: one without its mark is another one."""
