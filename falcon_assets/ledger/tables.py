"""The tables of the ledger, in the PostgreSQL schema ``falcon``; the migrations create them.

Everything but ``entity_status``, ``reruns``, ``evictions``, ``collected``, ``passes``, ``incomplete``, ``clock``,
``audit``, SLAs, notifications and the versions of definitions is a projection of Dagster's history: ``falcon ledger
rebuild`` makes it anew.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

SCHEMA = "falcon"
METADATA = MetaData(schema=SCHEMA)
_INSTANT = DateTime(timezone=True)

FEED_INSTANCES = Table(
    "feed_instances",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", _INSTANT, primary_key=True),
    Column("state", Text, nullable=False, comment="AVAILABLE or EVICTED"),
    Column("version", Text, nullable=False, comment="empty: none was seen before it was evicted"),
    Column("bytes", BigInteger),
    Column("records", BigInteger),
    Column("files", BigInteger),
    Column("signature", Text, comment="of the listing, where it landed from outside"),
    Column("landed_at", _INSTANT, nullable=False, comment="when the first version was seen, on the falcon clock"),
    Column("seen_at", _INSTANT, nullable=False, comment="when the present version was seen, on the falcon clock"),
    Column("previous_version", Text, comment="the version before the present one"),
    Column("changes", Integer, nullable=False, comment="how often the version changed after the first one"),
    Column("run_id", Text, comment="the run that published it; null: it landed from outside"),
    Column("event_id", BigInteger, nullable=False, comment="of Dagster's latest event about it"),
    Column("version_event", BigInteger, nullable=False, comment="of Dagster's event that brought the present version"),
    Column("late", Boolean, nullable=False, comment="whether a late rerun published the present version"),
    Column("evicted_at", _INSTANT, comment="EVICTED: when, on the falcon clock"),
    Column("evicted_by", Text, comment="EVICTED: the run that did it"),
    Column("evicted_bytes", BigInteger, comment="EVICTED: how much it was, statistics and metadata included"),
    Column("looked_before", _INSTANT, comment="the look before seen_at, where it landed: it came between the two"),
)
"""One row per feed instance that is available on a cluster, or was until it was evicted."""
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
    Column("nominal", _INSTANT, primary_key=True),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("reason_data", JSON(none_as_null=True), comment="the reason for programs, where a rule says it"),
    Column("attempt", Integer, nullable=False, comment="how many runs it was given to"),
    Column("failures", Integer, nullable=False, comment="FAILED or TIMED_OUT in a row"),
    Column("queued_run", Text, comment="the run that carries it and has not started it yet"),
    Column("run_id", Text, comment="the run that started it last"),
    Column("started", _INSTANT),
    Column("ended", _INSTANT),
    Column("event_id", BigInteger, nullable=False, comment="of Dagster's latest event about it"),
    Column("started_event", BigInteger, comment="of Dagster's event by which it started last"),
    Column("definition", Integer, comment="the version that it ran with last; null: not recorded"),
    Column("first_started", _INSTANT, comment="when it started first, on the falcon clock"),
    Column("first_succeeded", _INSTANT, comment="when it succeeded first, on the falcon clock"),
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
    Column("nominal", _INSTANT, primary_key=True),
    Column("input", Text, primary_key=True),
    Column("feed", Text, nullable=False),
    Column("instance", _INSTANT, primary_key=True),
    Column("version", Text, comment="null: it was not there (an optional input)"),
    Column("read_event", BigInteger, nullable=False, comment="of Dagster's event after which it was read; 0: unknown"),
    Column("too_late", Text, comment="a later version that was said to have come too late"),
    Column("stale", Boolean, nullable=False, comment="whether there is another version now, not said to be too late"),
    Column("input_cluster", Text, nullable=False, comment="where it was read: replications read another cluster"),
)
"""What each process instance read when it succeeded last."""
Index("ix_consumed_feed", CONSUMED.c.input_cluster, CONSUMED.c.feed, CONSUMED.c.instance)
Index("ix_consumed_stale", CONSUMED.c.cluster, CONSUMED.c.process, CONSUMED.c.input, postgresql_where=CONSUMED.c.stale)

DATA_VERSIONS = Table(
    "data_versions",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", _INSTANT, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("id", BigInteger, nullable=False, comment="numbered as history mentions them"),
    Column("event_id", BigInteger, nullable=False, comment="of Dagster's event that brought it last"),
    Column("status", Text, nullable=False, comment="AVAILABLE, REPLACED, EVICTED or READ"),
    Column("seen_at", _INSTANT, comment="since when it was there, on the falcon clock; null: it was only read"),
    Column("ended_at", _INSTANT, comment="when it was replaced or evicted, on the falcon clock"),
    Column("ended_by", Text, comment="the run that replaced or evicted it"),
    Column("archived_to", Text, comment="EVICTED: where it was archived; null: it was deleted"),
    Column("path", Text),
    Column("bytes", BigInteger),
    Column("records", BigInteger),
    Column("files", BigInteger),
    Column("process", Text, comment="which made it; null: it landed from outside"),
    Column("nominal", _INSTANT, comment="the instance of the process"),
    Column("run_id", Text, comment="the run that made it last"),
    Column("attempt", Integer, comment="of the instance of the process"),
    Column("definition", Integer, comment="the version that it was made with; null: not recorded"),
    Column("late", Boolean, nullable=False, comment="whether a late rerun made it"),
)
"""Every version that a feed instance had on a cluster, also when it was replaced or evicted."""
Index("ix_data_versions_id", DATA_VERSIONS.c.id, unique=True)
Index("ix_data_versions_feed", DATA_VERSIONS.c.feed, DATA_VERSIONS.c.instance)

KEPT_VERSIONS = Table(
    "kept_versions",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", _INSTANT, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("path", Text, nullable=False, comment="where it lies"),
    Column("replaced_at", _INSTANT, nullable=False, comment="when it was, on the falcon clock"),
)
"""The versions of feed instances that were replaced and can be restored."""

VERSION_EDGES = Table(
    "version_edges",
    METADATA,
    Column("output", BigInteger, primary_key=True, autoincrement=False, comment="the version that was made"),
    Column("input", BigInteger, primary_key=True, autoincrement=False, comment="a version it was made from"),
    Column("process", Text, nullable=False),
    Column("run_id", Text, comment="the run that did so last"),
    Column("definition", Integer, comment="the version that it ran with; null: not recorded"),
    Column("declared", Boolean, nullable=False, comment="whether it is an input of the definition"),
)
"""Which versions were made from which; of one that was made more than once, everything it was ever made from."""
Index("ix_version_edges_input", VERSION_EDGES.c.input, VERSION_EDGES.c.output)

FOLD = Table(
    "fold",
    METADATA,
    Column("only", Boolean, primary_key=True, comment="true: there is one row"),
    Column("event_id", BigInteger, nullable=False, comment="the latest event of Dagster's that is folded in"),
)
"""How far Dagster's history is folded in."""

ENTITY_STATUS = Table(
    "entity_status",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("status", Text, nullable=False, comment="SUBMITTED, RUNNING or SUSPENDED"),
    Column("since", _INSTANT, nullable=False, comment="on the falcon clock"),
    Column("commanded", Boolean, nullable=False, comment="by a person; false: by schedule: in the definition"),
    Column("scheduled_since", _INSTANT, comment="when it was scheduled first, on the falcon clock; null: never"),
)
"""What is scheduled. Dagster has no place for it, so a rebuild leaves it alone."""

RERUNS = Table(
    "reruns",
    METADATA,
    Column("process", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("nominal", _INSTANT, primary_key=True),
    Column("kind", Text, nullable=False, comment="late: its input changed; rerun: a person asked for it"),
    Column("cause", JSON, nullable=False, comment="late: the changes, as the record of the rerun shows them"),
    Column("attempt", Integer, nullable=False, comment="of the instance when it was asked for"),
    Column("failures", Integer, nullable=False, comment="of the instance when it was asked for"),
    Column("requested_at", _INSTANT, nullable=False, comment="on the falcon clock"),
    Column("late_workflow", Boolean, nullable=False, comment="rerun: with the workflow that late data has"),
    Column("use_latest", Boolean, nullable=False, comment="rerun: with the present definition"),
    Column("actor", Text, nullable=False, comment="rerun: who asked for it"),
    Column("reason", Text, nullable=False, comment="rerun: why"),
)
"""Requests to run instances again. Dagster has no place for them, so a rebuild leaves them alone."""

EVICTIONS = Table(
    "evictions",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", _INSTANT, primary_key=True),
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
    Column("decided_at", _INSTANT, nullable=False, comment="on the falcon clock"),
    Column("done_at", _INSTANT, comment="on the falcon clock; null: not all of it has gone"),
)
"""What retention decided on, before it touches anything. Dagster has no place for it: a rebuild leaves it alone."""
Index("ix_evictions_open", EVICTIONS.c.cluster, EVICTIONS.c.feed, postgresql_where=text("done_at IS NULL"))

COLLECTED = Table(
    "collected",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("looked_at", _INSTANT, comment="the last complete look at the feed, on the falcon clock"),
)
"""Where the collectors are. Nothing depends on it but how much is checked again."""

PASSES = Table(
    "passes",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("template", Text, nullable=False, comment="of the paths: another one is looked through anew"),
    Column("began", _INSTANT, comment="when the present pass began, in real time; null: none is under way"),
    Column("folder", Text, nullable=False, comment="the last one that the present pass looked through"),
    Column("lists_all", Boolean, nullable=False, comment="whether the present pass lists unchanged ones too"),
    Column("before", _INSTANT, comment="when the last complete pass began, in real time"),
    Column("all_before", _INSTANT, comment="when the last complete pass that listed all began, in real time"),
)
"""Where the collectors' passes over old instances are. Nothing depends on it but how much is checked again."""

INCOMPLETE = Table(
    "incomplete",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", _INSTANT, primary_key=True),
)
"""Instances that were seen and were not complete: their flag may come without a trace in the folder above them."""

PUSHED = Table(
    "pushed",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("partition", Text, primary_key=True, comment="as it was pushed; empty: none was named"),
    Column("event_id", BigInteger, nullable=False, comment="of Dagster's latest event that pushed it"),
)
"""Partitions that somebody else reported, and that a collector has to check."""

PROGRESS = Table(
    "progress",
    METADATA,
    Column("process", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("timeline", Text, primary_key=True, comment="of the process: another one starts anew"),
    Column("first_open", _INSTANT, nullable=False, comment="every instance before it is settled"),
)
"""How far the coordinators are. Nothing depends on it but how much they check again."""

CLOCK = Table(
    "clock",
    METADATA,
    Column("only", Boolean, primary_key=True, comment="true: there is one row"),
    Column("tag", Text, nullable=False, comment="the clock and its start; empty: the real one"),
)
"""Which clock everything here goes by. Dagster has no place for it, so a rebuild leaves it alone."""

DEFINITION_VERSIONS = Table(
    "definition_versions",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False, comment="from 1"),
    Column("text", Text, comment="as it is stored, with stars for secrets; null: the entity was deleted"),
    Column("text_hash", Text, comment="SHA-256 of the text"),
    Column("workflow_hash", Text, comment="SHA-256 of the files of its workflows; null: it has none"),
    Column("since", _INSTANT, nullable=False, comment="on the falcon clock"),
    Column("operation", Text, nullable=False, comment="the command, or load"),
    Column("actor", Text, nullable=False, comment="the user of the operating system"),
    Column("reason", Text, nullable=False, comment="in the words of who gave the command"),
)
"""Every definition that an entity has had. Dagster has no place for it, so a rebuild leaves it alone."""

DEFINITION_TREES = Table(
    "definition_trees",
    METADATA,
    Column("root", Text, primary_key=True, comment="the folder of the definitions"),
    Column("fingerprint", Text, nullable=False, comment="of definitions and workflow files, without secrets"),
    Column("workflows", JSON, nullable=False, comment="the workflow files, relative to the folder"),
    Column("entities", JSON, nullable=False, comment="kind and name of each entity"),
)
"""The trees whose versions are recorded: a load of the same tree compares one fingerprint."""

WORKFLOW_FILES = Table(
    "workflow_files",
    METADATA,
    Column("process", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False, comment="of its definition"),
    Column("path", Text, primary_key=True, comment="relative to the folder of the definitions"),
    Column("hash", Text, comment="SHA-256 of the content; null: it was not kept"),
    Column("problem", Text, nullable=False, comment="why it was not kept"),
)
"""The files of the workflows of each version of a process. A rebuild leaves them alone."""

FILE_CONTENTS = Table(
    "file_contents",
    METADATA,
    Column("hash", Text, primary_key=True, comment="SHA-256 of the whole content"),
    Column("number", Integer, primary_key=True, autoincrement=False, comment="of the part, from 0"),
    Column("data", LargeBinary, nullable=False),
)
"""What is in those files, each content once, in parts of a size that fits into memory."""

AUDIT = Table(
    "audit",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    Column("at", _INSTANT, nullable=False, comment="on the falcon clock"),
    Column("recorded", _INSTANT, nullable=False, comment="in real time"),
    Column("principal", Text, nullable=False, comment="who asked"),
    Column("os_user", Text, nullable=False, comment="the user of the process that did it"),
    Column("way", Text, nullable=False, comment="cli, api or job"),
    Column("operation", Text, nullable=False),
    Column("entities", JSONB, nullable=False, comment="kind and name of each that it was about"),
    Column("instances", Integer, comment="how many it was about; null: it was about entities"),
    Column("first", _INSTANT, comment="of the instances"),
    Column("last", _INSTANT, comment="of the instances"),
    Column("reason", Text, nullable=False, comment="in the words of who asked"),
    Column("result", Text, nullable=False, comment="done, unchanged, denied or failed"),
    Column("message", Text, nullable=False, comment="why it was denied or failed"),
)
"""Every operation that was asked for. Dagster has no place for it, so a rebuild leaves it alone."""

SLA_BREACHES = Table(
    "sla_breaches",
    METADATA,
    Column("kind", Text, primary_key=True, comment="feed or process"),
    Column("entity", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("level", Text, primary_key=True, comment="low, high, should_start_in or should_end_in"),
    Column("instance", _INSTANT, primary_key=True),
    Column("deadline", _INSTANT, nullable=False, comment="when it was breached"),
    Column("recorded_at", _INSTANT, nullable=False, comment="on the falcon clock"),
    Column("state", Text, nullable=False, comment="OPEN, MET or WITHDRAWN"),
    Column("cleared_at", _INSTANT, comment="on the falcon clock; null: it is open"),
    Column("told", Text, comment="the state that Dagster's check of the asset shows; null: nothing"),
    Column("notified", Text, comment="the state that the receivers of notifications were told, if any; null: nothing"),
)
"""Each breach of an SLA, once. Dagster has no place for them, so a rebuild leaves them alone."""
Index(
    "ix_sla_breaches_open",
    *(SLA_BREACHES.c[name] for name in ("cluster", "kind", "entity", "instance")),
    postgresql_where=text("state = 'OPEN'"),
)

Index(
    "ix_sla_breaches_untold",
    SLA_BREACHES.c.cluster,
    postgresql_where=text("told IS DISTINCT FROM state"),
)

Index(
    "ix_sla_breaches_unnotified",
    SLA_BREACHES.c.cluster,
    postgresql_where=text("notified IS DISTINCT FROM state"),
)

SLA_PROGRESS = Table(
    "sla_progress",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("entity", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("level", Text, primary_key=True),
    Column("judged", _INSTANT, nullable=False, comment="every instance before it is judged"),
)
"""How far each level of an SLA is evaluated."""

SLA_EVALUATIONS = Table(
    "sla_evaluations",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("at", _INSTANT, nullable=False, comment="the last evaluation, on the falcon clock"),
    Column("event_id", BigInteger, nullable=False, comment="how far the ledger was folded then"),
)
"""When the SLAs on a cluster were evaluated last."""

TOTALS = Table(
    "totals",
    METADATA,
    Column("what", Text, primary_key=True, comment="feed or process: instances; copied_bytes, evicted_bytes"),
    Column("entity", Text, primary_key=True, comment="a feed, a process or a replication"),
    Column("cluster", Text, primary_key=True),
    Column("label", Text, primary_key=True, comment="the state; evicted_bytes: what was done; else empty"),
    Column("number", Numeric, nullable=False),
)
"""How many instances are in which state, and how much was copied and evicted: nobody counts the rows for that."""

SLA_TOTALS = Table(
    "sla_totals",
    METADATA,
    Column("kind", Text, primary_key=True, comment="feed or process"),
    Column("entity", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("level", Text, primary_key=True),
    Column("breaches", BigInteger, nullable=False),
)
"""How many breaches of SLAs were ever recorded."""

NOTIFIED = Table(
    "notified",
    METADATA,
    Column("kind", Text, primary_key=True, comment="process: of processes and replications; feed: of feeds"),
    Column("name", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("events", JSONB, nullable=False, comment="what somebody is to be told of its instances"),
    Column("since_event", BigInteger, nullable=False, comment="Dagster's events up to this one are told to nobody"),
    Column("since", _INSTANT, nullable=False, comment="breaches of SLAs before it are told to nobody; falcon clock"),
    Column("seen_at", _INSTANT, nullable=False, comment="when the sensor saw that it is declared, in real time"),
)
"""Whose events are kept for the receivers of notifications. A rebuild leaves it alone."""

NOTIFICATION_EVENTS = Table(
    "notification_events",
    METADATA,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("key", Text, nullable=False, unique=True, comment="the same for the same event"),
    Column("event", Text, nullable=False, comment="FAILED, TIMED_OUT, LATE, EVICTED or SUCCEEDED"),
    Column("kind", Text, nullable=False, comment="as in notified"),
    Column("name", Text, nullable=False),
    Column("cluster", Text, nullable=False),
    Column("instance", _INSTANT, nullable=False),
    Column("at", _INSTANT, nullable=False, comment="on the falcon clock"),
    Column("source", Text, nullable=False, comment="tells it from others of the instance"),
    Column("reason", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("event_id", BigInteger, comment="of Dagster's event; null: there is none"),
)
"""Events of which is not decided yet who is told. A rebuild leaves them alone."""

NOTIFICATIONS = Table(
    "notifications",
    METADATA,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("receiver", Text, nullable=False, comment="name of the environment variable with the URL"),
    Column("key", Text, nullable=False, comment="of the event"),
    Column("event", Text, nullable=False),
    Column("kind", Text, nullable=False, comment="feed or process"),
    Column("entity", Text, nullable=False),
    Column("cluster", Text, nullable=False),
    Column("instance", _INSTANT, nullable=False),
    Column("at", _INSTANT, nullable=False, comment="on the falcon clock"),
    Column("reason", Text, nullable=False),
    Column("state", Text, nullable=False, comment="PENDING, SENDING, SENT or GIVEN_UP"),
    Column("message", Text, comment="the message that tells it; null: none yet"),
    Column("noted_at", _INSTANT, nullable=False, comment="in real time"),
    Column("settled_at", _INSTANT, comment="SENT, GIVEN_UP: when, in real time"),
    UniqueConstraint("receiver", "key"),
)
"""What receivers are told, each event once for each receiver. A rebuild leaves it alone."""
Index(
    "ix_notifications_open",
    NOTIFICATIONS.c.receiver,
    NOTIFICATIONS.c.id,
    postgresql_where=text("state IN ('PENDING', 'SENDING')"),
)
Index("ix_notifications_message", NOTIFICATIONS.c.message)
Index("ix_notifications_settled", NOTIFICATIONS.c.settled_at)

NOTIFICATION_RECEIVERS = Table(
    "notification_receivers",
    METADATA,
    Column("receiver", Text, primary_key=True),
    Column("failures", Integer, nullable=False, comment="messages in a row that did not come through"),
    Column("problem", Text, nullable=False, comment="why the last one did not; empty: it did"),
    Column("sent_at", _INSTANT, comment="when a message came through last, in real time"),
    Column("retry_at", _INSTANT, comment="when the next is tried, in real time; null: nothing failed"),
)
"""How the receivers of notifications are."""

PROJECTION = (
    FEED_INSTANCES,
    PROCESS_INSTANCES,
    CONSUMED,
    DATA_VERSIONS,
    KEPT_VERSIONS,
    VERSION_EDGES,
    PUSHED,
    FOLD,
    PROGRESS,
    TOTALS,
)
"""What a rebuild makes anew."""
