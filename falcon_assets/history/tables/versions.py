"""Tables of the versions of feed instances, of their sources, and of the verdicts about them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB

from falcon_assets.history.events.data_version import Version
from falcon_assets.history.tables.ledger_schema import INSTANT, METADATA, columns_of

_KEY = ("cluster", "feed", "instance", "version")
DATA_VERSIONS = Table("data_versions", METADATA, *columns_of(Version, *_KEY, number="id", kept_at=None))
"""Where a version is kept is in the next table."""
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

QUALITY_VERDICTS = Table(
    "quality_verdicts",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("verdict", Text, nullable=False, comment="VALID or INVALID, as the checks say"),
    Column("checked_at", INSTANT, nullable=False, comment="on the falcon clock"),
    Column("event_id", BigInteger, nullable=False, comment="of Dagster's event that brought it"),
    Column("suite", Text, nullable=False, comment="which checks were measured: quick or full"),
    Column("records", BigInteger, comment="rows; null: not counted"),
    Column("checks", JSONB, nullable=False, comment="what each check found, in the order of the definition"),
    Column("profile", JSONB(none_as_null=True), comment="figures of each column; null: not taken"),
    Column("accepted_by", Text, comment="who overruled it; null: nobody"),
    Column("accepted_at", INSTANT, comment="on the falcon clock"),
    Column("accepted_reason", Text),
)
"""The last verdict about each version, folded from Dagster's log."""
_STILL_INVALID = text("verdict = 'INVALID' AND accepted_by IS NULL")
Index("ix_quality_verdicts_invalid", *(QUALITY_VERDICTS.c[name] for name in _KEY), postgresql_where=_STILL_INVALID)

QUALITY_HELD = Table(
    "quality_held",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
    Column("place", Text, nullable=False, comment="where it lies, unpublished"),
    Column("process", Text, nullable=False, comment="the process that computed it"),
    Column("nominal", INSTANT, nullable=False, comment="the instance of the process"),
    Column("event_id", BigInteger, nullable=False, comment="of Dagster's event, which has what it was made from"),
    Column("at", INSTANT, nullable=False, comment="on the falcon clock"),
    Column("records", BigInteger, comment="rows; null: not counted"),
    Column("checks", JSONB, nullable=False, comment="what each check found, in the order of the definition"),
    Column("accepted_by", Text, comment="who overruled the checks; null: nobody"),
    Column("accepted_at", INSTANT, comment="on the falcon clock"),
    Column("accepted_reason", Text),
)
"""Outputs of processes that are not published, as one of them failed its checks, until the instance of the process
succeeds; folded from Dagster's log."""

QUALITY_ATTEMPTS = Table(
    "quality_attempts",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("attempts", Integer, nullable=False, comment="to check it, all without a verdict"),
    Column("retry_at", INSTANT, nullable=False, comment="when the next begins, in real time"),
    Column("problem", Text, nullable=False, comment="why the last one failed; empty: it has not ended"),
)
"""Versions that could not be checked, so that one that ends every run does not stop the others."""
