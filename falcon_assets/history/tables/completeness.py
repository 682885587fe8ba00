"""Tables of the completeness of feed instances: projections of Dagster's history."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Table, Text

from falcon_assets.history.tables.ledger_schema import INSTANT, METADATA

REPORTED_PARTS = Table(
    "reported_parts",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
    Column("source", Text, primary_key=True, comment="the program or machine that sends; empty: there is only one"),
    Column("part", Text, primary_key=True, comment="empty: the source as a whole"),
    Column("records", BigInteger, comment="how many came; null: not reported"),
    Column("expected", BigInteger, comment="how many were sent; null: not reported"),
    Column("minimum", Text),
    Column("maximum", Text),
    Column("offsets", Text),
    Column("reported_at", INSTANT, nullable=False, comment="the last report, on the falcon clock"),
)
"""Parts of feed instances, as they were reported last."""

COMPLETENESS = Table(
    "completeness",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("feed", Text, primary_key=True),
    Column("instance", INSTANT, primary_key=True),
    Column("expected", BigInteger, comment="records that were sent; null: not known"),
    Column("records", BigInteger, comment="records that are there; null: not known"),
    Column("taken", Boolean, nullable=False, comment="whether it was taken incomplete: it was waited for long enough"),
    Column("changed_at", INSTANT, comment="the last report or count, on the falcon clock"),
    Column("counted", Text, comment="signature of the listing whose records were counted; null: they were reported"),
)
"""Shares of feed instances; collectors write those of instances that are not available."""
