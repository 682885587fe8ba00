"""Dagster's tables, in the database of the ledger: no public method reads the history as a whole.

The public ones read one asset or one run. The ledger needs all of it, in the order of writing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    DateTime,
    Select,
    TableClause,
    Text,
    and_,
    column,
    exists,
    func,
    literal,
    select,
    text,
    true,
)

from falcon_assets.history.dagster_internals.tags import RUN_KEY

if TYPE_CHECKING:
    import dagster as dg


EVENT_LOG = TableClause(
    "event_logs",
    column("id", BigInteger),
    column("timestamp", DateTime),
    column("dagster_event_type", Text),
    column("run_id", Text),
    column("event", Text),
)
"""Events, in the order of their ids. An id is assigned before the event becomes visible; the time is in UTC."""
RUNS = TableClause("runs", column("run_id", Text), column("status", Text), column("pipeline_name", Text))
"""Of the job; Dagster's older word for it."""
RUN_TAGS = TableClause("run_tags", column("run_id", Text), column("key", Text), column("value", Text))
INSTIGATORS = TableClause(
    "instigators",
    column("selector_id", Text),
    column("instigator_type", Text),
    column("status", Text),
    column("instigator_body", Text),
)
TICKS = TableClause(
    "job_ticks",
    column("selector_id", Text),
    column("status", Text),
    column("timestamp", DateTime),
    column("tick_body", Text),
)
DAEMON = TableClause(
    "daemon_heartbeats",
    column("daemon_type", Text),
    column("daemon_id", Text),
    column("timestamp", DateTime),
    column("body", Text),
)
"""Parts of the daemon with their last heartbeat, in UTC. The id is that of the process."""
RUN_IS_QUEUED = ("PIPELINE_ENQUEUED", "PIPELINE_STARTING", "PIPELINE_START")
"""Types of events: all three, because not every run has each of them, and a run that breaks off while starting is an
attempt as well: Dagster starts no second run with its key.
"""
RUN_IS_OVER = ("PIPELINE_SUCCESS", "PIPELINE_FAILURE", "PIPELINE_CANCELED")
ASSET_IS_SEEN = ("ASSET_MATERIALIZATION", "ASSET_OBSERVATION")
FOLDED = (*RUN_IS_QUEUED, *RUN_IS_OVER, *ASSET_IS_SEEN)
UNFINISHED = ("NOT_STARTED", "QUEUED", "STARTING", "STARTED", "CANCELING")


class Tick(NamedTuple):
    """A tick, in seconds since 1970; ``ended`` None: not recorded. A tick that had nothing to do succeeded."""

    location: str
    kind: str
    name: str
    began: float
    ended: float | None
    succeeded: bool


class KnownRun(NamedTuple):
    """A run, as far as it can be known without loading Dagster; its tags include hidden ones."""

    status: str
    tags: dict[str, str]


_WRITERS = text(
    "SELECT virtualtransaction FROM pg_locks WHERE relation = 'event_logs'::regclass AND mode = 'RowExclusiveLock' "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def is_there(instance: dg.DagsterInstance) -> bool:
    """Whether the instance writes its events to a PostgreSQL; the default is SQLite."""
    return hasattr(instance.event_log_storage, "postgres_url")


def newest_event(connection: Connection) -> int:
    return int(connection.execute(select(func.coalesce(func.max(EVENT_LOG.c.id), 0))).scalar_one())


def newest_folded_type(connection: Connection, after: int) -> int | None:
    """Returns the highest id of an event of :data:`FOLDED` after that id; None: there is none."""
    newest: int | None = connection.execute(folded_type_after(after)).scalar_one()
    return newest


def folded_type_after(after: int | ColumnElement[int]) -> Select[Any]:
    """The query of :func:`newest_folded_type`."""
    log = EVENT_LOG.c
    return select(func.max(log.id)).where(log.id > after, _is_one_of(FOLDED))


def others_said_something(connection: Connection, after: int, run_id: str) -> bool:
    """Whether there are events of :data:`FOLDED` after that id, except the run's own about assets."""
    log = EVENT_LOG.c
    own = and_(log.run_id.is_not_distinct_from(run_id), _is_one_of(ASSET_IS_SEEN))
    return bool(connection.execute(select(exists().where(log.id > after, _is_one_of(FOLDED), ~own))).scalar_one())


def sensors_tick(connection: Connection, seconds: int) -> bool:
    """Whether the part of the daemon that ticks sensors had a heartbeat within so many seconds."""
    if connection.execute(select(func.to_regclass(DAEMON.name))).scalar_one() is None:
        return False
    since = func.timezone("UTC", func.now()) - timedelta(seconds=seconds)
    seen = exists().where(DAEMON.c.daemon_type == "SENSOR", DAEMON.c.timestamp > since)
    return bool(connection.execute(select(seen)).scalar_one())


def has_tables(connection: Connection) -> bool:
    there = (func.to_regclass(one.name).is_not(None) for one in (EVENT_LOG, RUNS))
    return all(connection.execute(select(*there)).one())


def has_unfinished_runs(connection: Connection) -> bool:
    return bool(connection.execute(select(exists().where(RUNS.c.status.in_(UNFINISHED)))).scalar_one())


def known_runs(connection: Connection, run_ids: Sequence[str]) -> dict[str, KnownRun]:
    wanted = func.any(literal(list(run_ids), ARRAY(Text)))
    found = {
        run_id: KnownRun(status, {})
        for run_id, status in connection.execute(select(RUNS.c.run_id, RUNS.c.status).where(RUNS.c.run_id == wanted))
    }
    for run_id, key, value in connection.execute(select(RUN_TAGS).where(RUN_TAGS.c.run_id == wanted)):
        if run_id in found:
            found[run_id].tags[key] = value
    return found


def unfinished_jobs(connection: Connection) -> list[tuple[str, dict[str, str]]]:
    """Job and tags of each run that has not ended."""
    jobs = select(RUNS.c.run_id, RUNS.c.pipeline_name).where(RUNS.c.status.in_(UNFINISHED))
    names = {one.run_id: one.pipeline_name for one in connection.execute(jobs)}
    return [(names[run_id], run.tags) for run_id, run in known_runs(connection, [*names]).items()]


def existing_run_keys(connection: Connection, keys: Sequence[str]) -> set[str]:
    """Those keys that a run has; the run may have ended."""
    tags = RUN_TAGS.c
    wanted = tags.value == func.any(literal(list(keys), ARRAY(Text)))
    return set(connection.execute(select(tags.value).where(tags.key == RUN_KEY, wanted)).scalars())


def last_ticks(connection: Connection) -> list[Tick]:
    own, tick = INSTIGATORS.c, TICKS.c
    over = select(tick.status, tick.tick_body).where(tick.selector_id == own.selector_id, tick.status != "STARTED")
    latest = over.order_by(tick.timestamp.desc()).limit(1).lateral("latest")
    statement = select(own.instigator_type, own.instigator_body, latest.c.status, latest.c.tick_body)
    found = []
    for kind, whose, status, body in connection.execute(statement.join_from(INSTIGATORS, latest, true())):
        said = json.loads(body)
        sensor = (str(_found("location_name", json.loads(whose)) or ""), kind.lower(), said["job_name"])
        found.append(Tick(*sensor, said["timestamp"], said.get("end_timestamp"), status != "FAILURE"))
    return found


def _found(key: str, said: Any) -> Any:
    if not isinstance(said, dict):
        return None
    if key in said:
        return said[key]
    return next((found for one in said.values() if (found := _found(key, one)) is not None), None)


def event_writers(connection: Connection) -> set[str]:
    """Returns the transactions that are inserting events: each began before its events got their ids."""
    return set(connection.execute(_WRITERS).scalars())


def events_between(
    connection: Connection, after: int, newest: int, types: Sequence[str], limit: int
) -> list[tuple[int, dg.EventLogEntry]]:
    """Returns the first events of those types with their ids, which are > ``after`` and <= ``newest``."""
    import dagster as dg  # noqa: PLC0415 - takes seconds, and whoever finds nothing new needs none of it
    from dagster_shared.serdes import deserialize_value  # noqa: PLC0415 - the log keeps an event as text

    log = EVENT_LOG.c
    ours = (log.id > after, log.id <= newest, _is_one_of(types))
    statement = select(log.id, log.event).where(*ours).order_by(log.id).limit(limit)
    return [(int(row.id), deserialize_value(row.event, dg.EventLogEntry)) for row in connection.execute(statement)]


def count_events(connection: Connection, after: int, types: Sequence[str]) -> int:
    log = EVENT_LOG.c
    ours = (log.id > after, _is_one_of(types))
    return int(connection.execute(select(func.count()).select_from(EVENT_LOG).where(*ours)).scalar_one())


def _is_one_of(types: Sequence[str]) -> ColumnElement[bool]:
    return EVENT_LOG.c.dagster_event_type == func.any(literal(list(types), ARRAY(Text)))
