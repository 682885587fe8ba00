"""Tables of imports and exports: projections of Dagster's history."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from falcon_assets.history.tables.ledger_schema import INSTANT, METADATA

TRANSFERS = Table(
    "transfers",
    METADATA,
    Column("process", Text, primary_key=True, comment="the import"),
    Column("cluster", Text, primary_key=True),
    Column("nominal", INSTANT, primary_key=True),
    Column("datasource", Text, nullable=False),
    Column("dataset", Text, nullable=False, comment="the table, query, path or topic"),
    Column("at", INSTANT, nullable=False, comment="on the falcon clock"),
    Column("rows", BigInteger, comment="null: not counted"),
    Column("low_watermark", Text, comment="from where changes were read; null: from the beginning, or all was read"),
    Column("high_watermark", Text, comment="up to where, from where the next instance goes on; null: all was read"),
    Column("newest", Text, comment="the greatest value that was read of the column of an incremental import"),
    Column("behind", Text, comment="what the next instance reads although it was there already, and why"),
    Column(
        "source_columns",
        JSONB,
        nullable=False,
        comment="name of the columns that were read, and their types in the feed",
    ),
    Column("event_id", BigInteger, nullable=False),
)
"""The last success of each instance of an import."""

DELIVERIES = Table(
    "deliveries",
    METADATA,
    Column("process", Text, primary_key=True, comment="the export"),
    Column("cluster", Text, primary_key=True),
    Column("nominal", INSTANT, primary_key=True),
    Column("event_id", BigInteger, primary_key=True, comment="of Dagster's event that recorded it"),
    Column("feed", Text, nullable=False),
    Column("version", Text, nullable=False, comment="what was sent"),
    Column("datasource", Text, nullable=False),
    Column("dataset", Text, nullable=False, comment="the table, resource or topic that it was sent to"),
    Column("execution", Text, nullable=False, comment="identifies the delivery at the target"),
    Column("rows", BigInteger, nullable=False),
    Column("at", INSTANT, nullable=False, comment="on the falcon clock"),
    Column("run_id", Text),
)
"""All deliveries of instances of feeds to datasources."""
Index("ix_deliveries_version", *(DELIVERIES.c[name] for name in ("feed", "nominal", "cluster", "version")))
