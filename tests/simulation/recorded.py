"""What the system says happened, read from Dagster's event log and the ledger, in the words of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from sqlalchemy import select

from falcon_assets.ledger.tables import PROCESS_INSTANCES
from falcon_assets.orchestration.platform.open_ledger import Ledger
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
        (number, process.name, cluster, feed, facts)
        for process in world.processes
        for cluster in process.clusters
        for feed, _expression in process.outputs
        for number, facts in _events(instance, dg.AssetKey([cluster, feed]))
    ]
    for number, process_name, cluster, feed, facts in sorted(events, key=lambda event: event[0]):
        key = (process_name, cluster, _time(facts["nominal_time"]))
        _tell(recorded, known, key, number, facts)
        if "data_version" in facts:
            label = f"{process_name}@{key[2]:%Y-%m-%dT%H:%MZ}#{len(recorded.runs[key])}"
            known[cluster, feed, facts["data_version"]] = label
    return recorded


def _tell(recorded: Recorded, known: Versions, key: Key, number: int, facts: dict[str, Any]) -> None:
    """Adds what one event says."""

    def label(feed: str, version: str | None) -> str | None:
        return None if version is None else known[key[1], feed, version]

    runs, state = recorded.runs.setdefault(key, []), facts.get("state")
    if "too_late" in facts:
        change = (facts["feed"], _time(facts["instance"]), label(facts["feed"], facts["too_late"]))
        recorded.too_late.setdefault(key, []).append(change)
    elif state == "RUNNING":
        if recorded.only_successes and runs and not runs[-1].succeeded:
            runs.pop()
        runs.append(RecordedRun(_time(facts["at"]), number))
    elif state in ("SUCCEEDED", "FAILED"):
        runs[-1].ended, runs[-1].succeeded = number, state == "SUCCEEDED"
    if state == "SUCCEEDED":
        runs[-1].read = {
            (name, _time(one["instance"])): label(one["feed"], one["version"])
            for name, consumed in facts["inputs"].items()
            for one in consumed
        }
        for one in facts.get("late", []):
            before, after = (label(one["feed"], one[end]) for end in ("from", "to"))
            runs[-1].late.append((one["input"], one["feed"], _time(one["instance"]), before, after))


def _events(instance: dg.DagsterInstance, key: dg.AssetKey) -> Iterator[tuple[int, dict[str, Any]]]:
    for fetch in (instance.fetch_observations, instance.fetch_materializations):
        for record in fetch(key, limit=10_000, ascending=True).records:
            event = record.asset_materialization or record.event_log_entry.asset_observation
            assert event is not None
            yield record.storage_id, {name: value.value for name, value in event.metadata.items()}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc)
