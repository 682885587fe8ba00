"""Tables of SLA breaches."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, Text, text

from falcon_assets.history.tables.ledger_schema import INSTANT, METADATA

SLA_BREACHES = Table(
    "sla_breaches",
    METADATA,
    Column("kind", Text, primary_key=True, comment="feed or process"),
    Column("entity", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("level", Text, primary_key=True, comment="low, high, should_start_in or should_end_in"),
    Column("instance", INSTANT, primary_key=True),
    Column("deadline", INSTANT, nullable=False, comment="when it was breached"),
    Column("recorded_at", INSTANT, nullable=False, comment="on the falcon clock"),
    Column("state", Text, nullable=False, comment="OPEN, MET or WITHDRAWN"),
    Column("cleared_at", INSTANT, comment="on the falcon clock; null: it is open"),
    Column("told", Text, comment="the state that Dagster's check of the asset shows; null: nothing"),
    Column("notified", Text, comment="the state that the receivers of notifications were told, if any; null: nothing"),
)
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
    Column("judged", INSTANT, nullable=False, comment="every instance before it is judged"),
)

SLA_EVALUATIONS = Table(
    "sla_evaluations",
    METADATA,
    Column("cluster", Text, primary_key=True),
    Column("at", INSTANT, nullable=False, comment="the last evaluation, on the falcon clock"),
    Column("event_id", BigInteger, nullable=False, comment="how far the ledger was folded then"),
)

SLA_TOTALS = Table(
    "sla_totals",
    METADATA,
    Column("kind", Text, primary_key=True, comment="feed or process"),
    Column("entity", Text, primary_key=True),
    Column("cluster", Text, primary_key=True),
    Column("level", Text, primary_key=True),
    Column("breaches", BigInteger, nullable=False),
)
