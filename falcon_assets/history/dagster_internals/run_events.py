"""Log entries about one partition in one run: Dagster's own methods read the whole run, with all its partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import dagster as dg
from dagster_shared.serdes import deserialize_value  # the log keeps an event as text
from sqlalchemy import BigInteger, Connection, TableClause, Text, and_, column, or_, select

LOG = TableClause(
    "event_logs",
    column("id", BigInteger),
    column("run_id", Text),
    column("dagster_event_type", Text),
    column("step_key", Text),
    column("asset_key", Text),
    column("partition", Text),
    column("event", Text),
)
TAGS = TableClause("run_tags", column("run_id", Text), column("key", Text), column("value", Text))
_ASSETS = [dg.DagsterEventType.ASSET_MATERIALIZATION.value, dg.DagsterEventType.ASSET_OBSERVATION.value]
_RUN = [
    *(one.value for one in dg.DagsterEventType if one.name.startswith(("RUN_", "PIPELINE_"))),
    *(one.value for one in (dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.ENGINE_EVENT)),
]
"""Types of events about a run and its step that matter to all its partitions."""
_CHUNK = 500


def runs_that_recorded(connection: Connection, assets: Sequence[dg.AssetKey], partition: str) -> set[str]:
    statement = select(LOG.c.run_id).where(_about(assets, partition), LOG.c.run_id != "").distinct()
    return set(connection.execute(statement).scalars())


def runs_with_tag(connection: Connection, key: str, part: str, others: dict[str, str]) -> set[str]:
    statement = select(TAGS.c.run_id).where(TAGS.c.key == key, TAGS.c.value.contains(part, autoescape=True))
    for other, value in others.items():
        has = select(TAGS.c.run_id).where(TAGS.c.key == other, TAGS.c.value == value)
        statement = statement.where(TAGS.c.run_id.in_(has))
    return set(connection.execute(statement).scalars())


def events_of(
    connection: Connection, run_id: str, step: str, assets: Sequence[dg.AssetKey], partition: str
) -> Iterator[dg.EventLogEntry]:
    """Yields the log entries about the partition and about the run itself, oldest first, reading a few at a time.

    ``run_id`` "": entries outside of all runs. Entries of other steps than ``step`` are left out.
    """
    of_run = and_(
        LOG.c.partition.is_(None),
        or_(LOG.c.dagster_event_type.is_(None), LOG.c.dagster_event_type.in_(_RUN)),
        or_(LOG.c.step_key.is_(None), LOG.c.step_key.in_(["", step])),
    )
    wanted = _about(assets, partition) if not run_id else or_(_about(assets, partition), of_run)
    after = 0
    while True:
        page = select(LOG.c.id, LOG.c.event).where(LOG.c.run_id == run_id, LOG.c.id > after, wanted)
        rows = connection.execute(page.order_by(LOG.c.id).limit(_CHUNK)).all()
        for row in rows:
            yield deserialize_value(row.event, dg.EventLogEntry)
        if len(rows) < _CHUNK:
            return
        after = rows[-1].id


def _about(assets: Sequence[dg.AssetKey], partition: str):  # type: ignore[no-untyped-def]  # of SQLAlchemy's many types
    keys = [one.to_string() for one in assets]
    return and_(LOG.c.asset_key.in_(keys), LOG.c.dagster_event_type.in_(_ASSETS), LOG.c.partition == partition)
