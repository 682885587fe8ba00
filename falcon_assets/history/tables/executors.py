"""The table of executors."""

from __future__ import annotations

from sqlalchemy import Column, Table
from sqlalchemy.dialects.postgresql import JSONB

from falcon_assets.history.tables.ledger_schema import METADATA, columns_of
from falcon_assets.planning.executor_health import ExecutorRecord

EXECUTORS = Table(
    "executors",
    METADATA,
    *columns_of(ExecutorRecord, "cluster", "name"),
    Column("reserved", JSONB, nullable=False, comment="runs that are about to exist: key -> time, job, slots"),
)
"""Whether the executors of clusters answer, and how busy they are."""
