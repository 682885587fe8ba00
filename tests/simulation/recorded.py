"""What the system says happened, read from Dagster's event log and the ledger, in the words of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

import dagster as dg
from sqlalchemy import select

from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.process_instances import CameTooLate, InstanceChanged
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.tables import PROCESS_INSTANCES
from falcon_assets.planning.instance_record import InstanceState
from tests.records import has_record, read_record
from tests.simulation.world import World

Key = tuple[str, str, datetime]
LateCause = tuple[str, str, datetime, str | None, str | None]  # input, feed, instance, from, to
TooLate = tuple[str, datetime, str | None]  # feed, instance, version
Versions = dict[tuple[str, str, str], str]
"""(cluster, feed, data version) -> what the oracle calls it."""


@dataclass
class RecordedRun:
    """One run of a process instance; `began` and `ended` are the numbers of Dagster's events."""

    at: datetime
    began: int
    ended: int = 0
    succeeded: bool = False
    read: dict[tuple[str, datetime], str | None] = field(default_factory=dict)
    late: list[LateCause] = field(default_factory=list)


@dataclass
class Recorded:
    """Everything that was recorded about a world.

    With `only_successes`, a run that did not succeed is left out as soon as the instance runs again: where nothing is
    meant to fail it was killed, and the next one does the same again.
    """

    runs: dict[Key, list[RecordedRun]]
    states: dict[Key, str]
    too_late: dict[Key, list[TooLate]]
    only_successes: bool


def read_back(
    world: World, instance: dg.DagsterInstance, ledger: Ledger, versions: Versions, only_successes: bool = False
) -> Recorded:
    """All that happened, in the order of the events; `versions` are the names of the data versions from outside."""
    ledger.catch_up()
    with ledger.engine.connect() as connection:
        rows = connection.execute(select(PROCESS_INSTANCES)).all()
    states = {(row.process, row.cluster, row.nominal): row.state for row in rows}
    recorded = Recorded({}, states, {}, only_successes)
    known = dict(versions)
    events = [
        (number, process.name, cluster, feed, event)
        for process in world.processes
        for cluster in process.clusters
        for feed, _expression in process.outputs
        for number, event in _events(instance, dg.AssetKey([cluster, feed]))
    ]
    for number, process_name, cluster, feed, event in sorted(events, key=lambda event: event[0]):
        for kind in (CameTooLate, InstanceChanged, FeedInstanceAvailable):
            if not has_record(kind, event):
                continue
            fact = read_record(kind, event)
            key = (process_name, cluster, fact.nominal)
            if isinstance(fact, FeedInstanceAvailable):
                label = f"{process_name}@{key[2]:%Y-%m-%dT%H:%MZ}#{len(recorded.runs.setdefault(key, []))}"
                known[cluster, feed, fact.version] = label
            else:
                _tell(recorded, known, key, number, fact)
    return recorded


def _tell(recorded: Recorded, known: Versions, key: Key, number: int, fact: CameTooLate | InstanceChanged) -> None:
    """Adds what one event says."""

    def label(feed: str, version: str | None) -> str | None:
        return None if version is None else known[key[1], feed, version]

    runs = recorded.runs.setdefault(key, [])
    if isinstance(fact, CameTooLate):
        change = (fact.feed, fact.instance, label(fact.feed, fact.too_late))
        recorded.too_late.setdefault(key, []).append(change)
        return
    if fact.state is InstanceState.RUNNING:
        if recorded.only_successes and runs and not runs[-1].succeeded:
            runs.pop()
        runs.append(RecordedRun(fact.at, number))
    elif fact.state in (InstanceState.SUCCEEDED, InstanceState.FAILED):
        runs[-1].ended, runs[-1].succeeded = number, fact.state is InstanceState.SUCCEEDED
    if fact.state is InstanceState.SUCCEEDED:
        runs[-1].read = {
            (name, one.instance): label(one.feed, one.version)
            for name, read in (fact.inputs or {}).items()
            for one in read
        }
        for one in fact.late:
            before, after = label(one.feed, one.before), label(one.feed, one.after)
            runs[-1].late.append((one.input, one.feed, one.instance, before, after))


def _events(instance: dg.DagsterInstance, key: dg.AssetKey) -> Iterator[tuple[int, dg.EventLogRecord]]:
    for fetch in (instance.fetch_observations, instance.fetch_materializations):
        for record in fetch(key, limit=10_000, ascending=True).records:
            yield record.storage_id, record
