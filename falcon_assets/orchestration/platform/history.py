"""Dagster's history as facts for the ledger, in the order of its event log."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from sqlalchemy import Connection

from falcon_assets.errors import FalconError
from falcon_assets.events import metadata as meta
from falcon_assets.ledger.facts import (
    CameTooLate,
    Consumption,
    Fact,
    FeedInstanceAvailable,
    FeedInstanceEvicted,
    InstanceChanged,
    PartitionPushed,
    PushRefused,
    RunEnded,
    RunEnding,
    RunQueued,
)
from falcon_assets.model.instant import parse_instant
from falcon_assets.orchestration.dagster_internals import tables
from falcon_assets.orchestration.mapping import run_tags
from falcon_assets.planning.instances.instance_record import InstanceState
from falcon_assets.planning.time.clock import Clock

# All three, for not every run says each of them; a run that breaks off while starting is an attempt as well, because
# Dagster starts no second run with its key.
_QUEUED = (dg.DagsterEventType.RUN_ENQUEUED, dg.DagsterEventType.RUN_STARTING, dg.DagsterEventType.RUN_START)
_ENDINGS = {
    dg.DagsterEventType.RUN_SUCCESS: RunEnding.FAILED,
    dg.DagsterEventType.RUN_FAILURE: RunEnding.FAILED,
    dg.DagsterEventType.RUN_CANCELED: RunEnding.KILLED,
}
_ASSETS = (dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_OBSERVATION)
_TYPES = [one.value for one in (*_QUEUED, *_ENDINGS, *_ASSETS)]
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class DagsterHistory:
    """Reads the event log of an instance, from the database that the ledger is in as well.

    Attributes:
        instance: Whose runs say by their tags which instances they carry.
    """

    instance: dg.DagsterInstance

    def __call__(self, connection: Connection, after: int, limit: int) -> tuple[Sequence[Fact], int | None]:
        """The facts of the next events after ``after``; see :data:`falcon_assets.ledger.fold.History`."""
        newest = tables.newest_event(connection)
        if newest <= after or not self._all_written(connection):
            return (), None
        entries = tables.events_between(connection, after, newest, _TYPES, limit)
        runs = self._runs({entry.run_id for _, entry in entries if entry.run_id})
        facts = [fact for event_id, entry in entries for fact in _facts(event_id, entry, runs)]
        return facts, entries[-1][0] if len(entries) == limit else newest

    def behind(self, connection: Connection, after: int) -> int:
        """How many events after that event id there are to look at."""
        return tables.count_events(connection, after, _TYPES)

    def _all_written(self, connection: Connection) -> bool:
        """Waits for whoever was inserting events just now: ids are given out in order, but not seen in order.

        False where somebody takes very long; the events are folded in later then.
        """
        waiting_for = tables.event_writers(connection)
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while waiting_for and time.monotonic() < give_up:
            time.sleep(0.005)  # a transaction that ends tells nobody who does not hold its locks
            waiting_for &= tables.event_writers(connection)
        return not waiting_for

    def _runs(self, run_ids: set[str]) -> Mapping[str, Mapping[str, str]]:
        if not run_ids:
            return {}
        found = self.instance.get_run_records(dg.RunsFilter(run_ids=sorted(run_ids)))
        return {one.dagster_run.run_id: one.dagster_run.tags for one in found}


def _facts(event_id: int, entry: dg.EventLogEntry, runs: Mapping[str, Mapping[str, str]]) -> Iterator[Fact]:
    event = entry.dagster_event
    if event is None:
        return
    tags = runs.get(entry.run_id, {})
    seen = _clock(tags).at(datetime.fromtimestamp(entry.timestamp, timezone.utc))
    if event.event_type in _QUEUED or event.event_type in _ENDINGS:
        nominals, attempts = run_tags.nominals_of(tags), run_tags.attempts_of(tags)
        # A run that ends before it was queued (canceled, or its launcher was killed) was an attempt all the same:
        # Dagster starts no second run with its key.
        if nominals and (attempts or event.event_type in _QUEUED):
            process, cluster = tags[run_tags.PROCESS], tags[run_tags.CLUSTER]
            yield RunQueued(event_id, entry.run_id, process, cluster, nominals, attempts)
    if event.event_type in _ENDINGS:
        interrupted = event.event_type is not dg.DagsterEventType.RUN_SUCCESS and tags.get(run_tags.INTERRUPTED)
        ending = RunEnding.INTERRUPTED if interrupted else _ENDINGS[event.event_type]
        yield RunEnded(event_id, entry.run_id, ending, seen, interrupted or _why(entry))
    elif entry.asset_materialization is not None:
        yield from _asset_facts(event_id, entry.asset_materialization, entry.run_id, seen, landed=True)
    elif entry.asset_observation is not None:
        yield from _asset_facts(event_id, entry.asset_observation, entry.run_id, seen, landed=False)


def _why(entry: dg.EventLogEntry) -> str:
    event = entry.dagster_event
    said = (event.message or "") if event else ""
    return said or "the run ended without finishing it"


def _clock(tags: Mapping[str, str]) -> Clock:
    return Clock.from_tag(run_tags.clock_of(tags))


def _asset_facts(
    event_id: int, event: dg.AssetMaterialization | dg.AssetObservation, run_id: str, seen: datetime, *, landed: bool
) -> Iterable[Fact]:
    """What an event about ``[cluster, feed]`` says; nothing where it is about something else."""
    if len(event.asset_key.path) != 2:
        return ()
    said = meta.plain(event.metadata)
    # Others may write about these assets, and whatever they like: what is not ours must not stop the fold.
    try:
        if landed and meta.INSTANCE in said:
            return tuple(_landed(event_id, event, said, run_id, seen))
        if landed and meta.NOMINAL_TIME in said:  # the asset of a process without outputs
            return tuple(_changed(event_id, event.asset_key.path[0], said, run_id, seen))
        if not landed:
            return tuple(_observed(event_id, event, said, run_id, seen))
    except (FalconError, KeyError, TypeError, ValueError):
        pass
    cluster, feed = event.asset_key.path
    return (PartitionPushed(event_id, cluster, feed, event.partition or ""),) if landed else ()


def _landed(
    event_id: int,
    event: dg.AssetMaterialization | dg.AssetObservation,
    said: Mapping[str, Any],
    run_id: str,
    seen: datetime,
) -> Iterator[Fact]:
    """What a materialization of ours says."""
    cluster, feed = event.asset_key.path
    version = (event.tags or {}).get(meta.DATA_VERSION_TAG) or said.get("data_version") or f"event-{event_id}"
    yield FeedInstanceAvailable(
        event_id=event_id,
        cluster=cluster,
        feed=feed,
        instance=parse_instant(said[meta.INSTANCE]),
        version=version,
        at=_at(said, seen),
        bytes=_whole(said.get("bytes")),
        records=_whole(said.get("records")),
        files=_whole(said.get("files")),
        signature=said.get(meta.SIGNATURE),
        run_id=_run(said, run_id),
        late=meta.LATE in said,
        looked_before=datetime.fromisoformat(before) if (before := said.get(meta.LOOKED_BEFORE)) else None,
        pushed=(said[meta.PUSHED], int(said[meta.PUSH])) if meta.PUSHED in said else None,
    )
    yield from _changed(event_id, cluster, said, run_id, seen)


def _observed(
    event_id: int,
    event: dg.AssetMaterialization | dg.AssetObservation,
    said: Mapping[str, Any],
    run_id: str,
    seen: datetime,
) -> Iterator[Fact]:
    """What an observation of ours says."""
    cluster, feed = event.asset_key.path
    if meta.PUSHED in said:
        yield PushRefused(event_id, cluster, feed, said[meta.PUSHED], int(said[meta.PUSH]))
    elif meta.EVICTED in said:
        yield FeedInstanceEvicted(
            event_id=event_id,
            cluster=cluster,
            feed=feed,
            instance=parse_instant(said[meta.INSTANCE]),
            at=_at(said, seen),
            bytes=said.get("bytes"),
            run_id=run_id or None,
        )
    elif meta.TOO_LATE in said:
        yield CameTooLate(
            event_id=event_id,
            process=said[meta.PROCESS],
            cluster=cluster,
            nominal=parse_instant(said[meta.NOMINAL_TIME]),
            feed=said[meta.FEED],
            instance=parse_instant(said[meta.INSTANCE]),
            version=said[meta.TOO_LATE],
        )
    yield from _changed(event_id, cluster, said, run_id, seen)


def _changed(
    event_id: int, cluster: str, said: Mapping[str, Any], run_id: str, seen: datetime
) -> Iterator[InstanceChanged]:
    """The state that a process instance came to by an event."""
    if meta.STATE in said:
        yield InstanceChanged(
            event_id=event_id,
            process=said[meta.PROCESS],
            cluster=cluster,
            nominal=parse_instant(said[meta.NOMINAL_TIME]),
            state=InstanceState(said[meta.STATE]),
            at=_at(said, seen),
            run_id=_run(said, run_id),
            reason=said.get(meta.REASON, ""),
            consumed=tuple(_consumed(said.get(meta.INPUTS, {}))),
        )


def _at(said: Mapping[str, Any], seen: datetime) -> datetime:
    return datetime.fromisoformat(said[meta.AT]) if meta.AT in said else seen


def _run(said: Mapping[str, Any], run_id: str) -> str | None:
    # Events without a run carry an empty run id of Dagster's.
    return run_id if meta.NOMINAL_TIME in said and run_id and meta.PROCESS in said else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _consumed(inputs: Mapping[str, Sequence[Mapping[str, str]]]) -> Iterator[Consumption]:
    for name, instances in inputs.items():
        for one in instances:
            if "feed" in one:
                yield Consumption(
                    name, one["feed"], parse_instant(one["instance"]), one.get("version"), one.get("cluster")
                )
