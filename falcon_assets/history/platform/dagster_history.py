"""Dagster's history as facts for the ledger, in the order of its event log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg
from sqlalchemy import Connection

from falcon_assets.errors import SettingsError
from falcon_assets.history.dagster_internals import runs as dagster_runs
from falcon_assets.history.dagster_internals import tables
from falcon_assets.history.events.event_log import Logged, asset_facts
from falcon_assets.history.events.process_instances import RunEnded, RunEnding, RunQueued
from falcon_assets.history.events.record import storable
from falcon_assets.history.mapping import run_tags

_QUEUED = tuple(map(dg.DagsterEventType, tables.RUN_IS_QUEUED))
_ENDINGS = {
    dg.DagsterEventType.RUN_SUCCESS: RunEnding.FAILED,
    dg.DagsterEventType.RUN_FAILURE: RunEnding.FAILED,
    dg.DagsterEventType.RUN_CANCELED: RunEnding.KILLED,
}
_PATIENCE_SECONDS = 5.0
_DATABASE_LOST = "its run lost the database"
_OF_THE_DATABASE = ("OperationalError", "InterfaceError", "DagsterPostgresException", "ReadOnlyError")
_NOT_ON_POSTGRESQL = """Dagster's history is not on PostgreSQL, where alone it can be followed; say so in dagster.yaml:
storage:
  custom: {module: falcon_assets.dagster_instance, class: FalconStorage, config: {}}"""


@dataclass(frozen=True)
class DagsterHistory:
    instance: dg.DagsterInstance

    def __post_init__(self) -> None:
        """Raises SettingsError where the history is not on PostgreSQL."""
        if not tables.is_there(self.instance):
            raise SettingsError(_NOT_ON_POSTGRESQL)

    def __call__(self, connection: Connection, after: int, limit: int) -> tuple[Sequence[Logged], int | None, bool]:
        newest = tables.newest_event(connection)
        if newest <= after or not self._all_written(connection):
            return (), None, True
        entries = tables.events_between(connection, after, newest, tables.FOLDED, limit)
        runs = self._runs({entry.run_id for _, entry in entries if entry.run_id})
        facts = [
            fact
            for number, entry in entries
            for fact in facts_of(number, entry, runs.get(entry.run_id, {}), self._said_before(entry))
        ]
        is_all = len(entries) < limit
        return facts, newest if is_all else entries[-1][0], is_all

    def behind(self, connection: Connection, after: int) -> int:
        return tables.count_events(connection, after, tables.FOLDED)

    def _all_written(self, connection: Connection) -> bool:
        """Waits for transactions that insert events: ids are assigned in order, but become visible in any order.

        False: one takes longer than the limit; the events are folded later.
        """
        waiting_for = tables.event_writers(connection)
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while waiting_for and time.monotonic() < give_up:
            time.sleep(0.005)  # the end of a transaction notifies only those that have its locks
            waiting_for &= tables.event_writers(connection)
        return not waiting_for

    def _said_before(self, entry: dg.EventLogEntry) -> str:
        event = entry.dagster_event
        if event is None or event.event_type is not dg.DagsterEventType.RUN_FAILURE:
            return ""
        return dagster_runs.error_before(self.instance, event, entry.run_id)

    def _runs(self, run_ids: set[str]) -> Mapping[str, Mapping[str, str]]:
        if not run_ids:
            return {}
        found = self.instance.get_run_records(dg.RunsFilter(run_ids=sorted(run_ids)))
        return {one.dagster_run.run_id: one.dagster_run.tags for one in found}


def facts_of(event_id: int, entry: dg.EventLogEntry, tags: Mapping[str, str], before: str = "") -> Iterator[Logged]:
    """Yields the facts of an entry; ``tags`` are those of its run, ``before`` is its last error before the end."""
    event = entry.dagster_event
    run_id = entry.run_id or None  # events without a run have an empty text
    if event is None:
        return
    seen = run_tags.shown_at(tags, datetime.fromtimestamp(entry.timestamp, UTC))
    if event.event_type in _QUEUED or event.event_type in _ENDINGS:
        nominals, attempts = run_tags.nominals_of(tags), run_tags.attempts_of(tags)
        # A run that ends before it was queued (canceled, or its launcher was killed) was an attempt all the same:
        # Dagster starts no second run with its key.
        if nominals and (attempts or event.event_type in _QUEUED):
            process, cluster = tags[run_tags.PROCESS], tags[run_tags.CLUSTER]
            yield Logged(event_id, RunQueued(process, cluster, nominals, attempts), run_id)
    if event.event_type in _ENDINGS:
        interrupted = event.event_type is not dg.DagsterEventType.RUN_SUCCESS and tags.get(run_tags.INTERRUPTED)
        if event.event_type is dg.DagsterEventType.RUN_FAILURE and not interrupted and _lost_the_database(event):
            interrupted, died = _DATABASE_LOST, False
        else:  # who is asked to end, ends as cancelled
            died = bool(interrupted) and event.event_type is dg.DagsterEventType.RUN_FAILURE
        ending = RunEnding.INTERRUPTED if interrupted else _ENDINGS[event.event_type]
        why = interrupted or " ".join(filter(None, (_why(event), before)))
        yield Logged(event_id, RunEnded(ending, seen, storable(why), died), run_id)
    elif asset_event := entry.asset_materialization or entry.asset_observation:
        yield from (Logged(event_id, fact, run_id) for fact in asset_facts(event_id, asset_event, seen))


def _why(event: dg.DagsterEvent) -> str:
    said = " ".join(filter(None, (event.message, dagster_runs.error_in(event))))
    return said or "the run ended without finishing it"


def _lost_the_database(event: dg.DagsterEvent) -> bool:
    data = event.event_specific_data
    step = getattr(getattr(data, "first_step_failure_event", None), "event_specific_data", None)
    error = getattr(data, "error", None) or getattr(step, "error", None)
    while error is not None:
        if error.cls_name in _OF_THE_DATABASE:
            return True
        error = error.cause
    return False
