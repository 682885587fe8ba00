"""Tables of a front of several colos. Their times are real."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from falcon_assets.history.tables.ledger_schema import INSTANT, METADATA

COLO_WANTED = Table(
    "colo_wanted",
    METADATA,
    Column("colo", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("version", BigInteger, nullable=False, comment="of the entity, counted by this front"),
    Column("present", Boolean, nullable=False, comment="whether the colo is to have it"),
    Column("place", Text, nullable=False, comment="the colo of a cluster"),
    Column("definition", Text, comment="what the colo does not have yet"),
    Column("status", Text, comment="the status that it does not have yet"),
    Column("is_anew", Boolean, nullable=False, server_default="false", comment="the colo has the deleted one yet"),
    Column("is_pending", Boolean, nullable=False),
    Column("problem", Text, nullable=False, comment="why it is pending, or why the last change was refused"),
    Column("doubt", INSTANT, comment="when a request got no answer"),
    Column("principal", JSONB, nullable=False, comment="who asked: name, role, groups"),
    Column("reason", Text, nullable=False),
)
"""What each colo is to have of each entity."""

COLOS_READ = Table(
    "colos_read",
    METADATA,
    Column("colo", Text, primary_key=True),
    Column("at", INSTANT, nullable=False),
)
"""Colos whose entities are in the journal: all of them, or none."""
