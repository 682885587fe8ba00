"""Tables of the versions of feed instances, and of their sources."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from falcon_assets.history.tables.metadata import INSTANT, METADATA

DATA_VERSIONS = Table(
    "data_versions",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("id", BigInteger, nullable=False, comment="numbered as history mentions them"),
    Column("event_id", BigInteger, nullable=False, comment="of Dagster's event that brought it last"),
    Column("status", Text, nullable=False, comment="AVAILABLE, REPLACED, EVICTED or READ"),
    Column("seen_at", INSTANT, comment="since when it was there, on the falcon clock; null: it was only read"),
    Column("ended_at", INSTANT, comment="when it was replaced or evicted, on the falcon clock"),
    Column("ended_by", Text, comment="the run that replaced or evicted it"),
    Column("archived_to", Text, comment="EVICTED: where it was archived; null: it was deleted"),
    Column("path", Text),
    Column("bytes", BigInteger),
    Column("records", BigInteger),
    Column("files", BigInteger),
    Column("process", Text, comment="which made it; null: it landed from outside"),
    Column("nominal", INSTANT, comment="the instance of the process"),
    Column("run_id", Text, comment="the run that made it last"),
    Column("made_at", INSTANT, comment="when that run did, on the falcon clock; null: not recorded"),
    Column("attempt", Integer, comment="of the instance of the process"),
    Column("definition", Integer, comment="the version that it was made with; null: not recorded"),
    Column("late", Boolean, nullable=False, comment="whether a late rerun made it"),
    Column("made_by", Text, comment="the user of the operating system whose run made it; null: not recorded"),
    Column("environment", Text, comment="JSON: versions of Python and packages that it was made with"),
    Column("places", Text, comment="JSON: from what of no feed it was made; null: nothing, or nobody knows"),
    Column("capture", Text, comment="how much of what its run read and wrote is known; null: not recorded"),
    Column("warnings", Text, comment="JSON: how that differs from what the process declares; null: in nothing"),
    Column("writes", Text, comment="JSON: what its run wrote and does not declare; null: nothing, or nobody knows"),
    Column("restored_by", Text, comment="AVAILABLE: who restored it; null: it was made or landed"),
    Column("plan", Text, comment="hash of its columns and what they were made from; null: not recorded"),
)
Index("ix_data_versions_id", DATA_VERSIONS.c.id, unique=True)
Index("ix_data_versions_run", DATA_VERSIONS.c.run_id)
Index("ix_data_versions_feed", DATA_VERSIONS.c.feed, DATA_VERSIONS.c.instance)

KEPT_VERSIONS = Table(
    "kept_versions",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("path", Text, nullable=False, comment="where it lies"),
    Column("replaced_at", INSTANT, nullable=False, comment="when it was, on the falcon clock"),
)

VERSION_COLUMNS = Table(
    "version_columns",
    METADATA,
    Column("plan", Text, primary_key=True, comment="hash of the columns"),
    Column("columns", JSONB, nullable=False, comment="name, type, what each was made from, whether that is sure"),
    Column("rows_from", JSONB(none_as_null=True), comment="what decides which rows there are; null: not recorded"),
    Column("rows_opaque", Boolean, comment="whether more may decide which rows there are; null: it is sure"),
)
"""Columns of versions and their sources; equal ones are stored once."""

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
"""Sources of versions; for a version made more than once, all sources it ever had."""
Index("ix_version_edges_input", VERSION_EDGES.c.input, VERSION_EDGES.c.output)

VERSION_LIFECYCLE = Table(
    "version_lifecycle",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("status", Text, nullable=False, comment="initial, test, validated or critical"),
    Column("at", INSTANT, nullable=False, comment="when it was set, on the falcon clock"),
    Column("actor", Text, nullable=False, comment="who set it"),
    Column("reason", Text, nullable=False, comment="in the words of who set it"),
)
