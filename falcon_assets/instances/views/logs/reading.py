"""Logs of an instance: of its run, of Spark and of its program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import dagster as dg

from falcon_assets.base.texts import hidden, keep_secret
from falcon_assets.compute.engines.computing.program_files import logs_of_run
from falcon_assets.history.dagster_internals import run_events
from falcon_assets.history.dagster_internals.compute_logs import captured_logs
from falcon_assets.history.events.record import said_by
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.instances.views.logs.instance_runs import InstanceRun, partition_of
from falcon_assets.instances.views.logs.log_lines import Read, known_secrets, last_of, lines_of, reading, tail_of
from falcon_assets.instances.views.query import InstanceInfo
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Result
from falcon_assets.planning.workloads import Workload
from falcon_assets.storage.cluster_store import ClusterStore

_INSTANT = r"\d{4,}-\d\d-\d\dT\d\d:\d\dZ"
_OF_INSTANCE = re.compile(rf"({_INSTANT}): ")


@dataclass(frozen=True)
class SaidEvent(Result):
    """``at`` is in real time; ``shared``: the event is about the run, and so about all instances of it."""

    at: datetime
    type: str
    shared: bool
    text: str


@dataclass(frozen=True)
class TextLog(Result):
    """A log of a program, or of the process of a run; ``shared``: other instances write to it too."""

    source: str
    place: str
    shared: bool
    read: Read
    hide: Callable[[str], str]
    keys = ("source", "place", "shared")

    def lines(self) -> Iterator[str]:
        return map(self.hide, lines_of(self.read))

    def tail(self) -> tuple[list[str], bool]:
        file = Path(self.place)
        lines, cut = tail_of(self.read, file.stat().st_size if file.is_file() else None)
        return list(map(self.hide, lines)), cut


@dataclass(frozen=True)
class InstanceLogs:
    """Logs of one run of an instance; ``run`` None: it never ran."""

    instance: InstanceInfo
    runs: tuple[InstanceRun, ...]
    run: InstanceRun | None
    workload: Workload
    installation: Installation

    def events(self) -> Iterator[SaidEvent]:
        """Events of the run, then those outside of runs since it began."""
        began: float | None = None
        runs = [self.run.run] if self.run else []
        if self.run in (None, *self.runs[-1:]):  # what was said outside of runs comes after the latest one
            runs.append("")
        with self.installation.ledger.engine.connect() as connection:
            for run_id in runs:
                found = run_events.events_of(connection, run_id, self.workload.op_name, self._assets, self._partition)
                for entry in found:
                    began = entry.timestamp if began is None else began
                    if entry.timestamp >= began and (said := self._said(entry)):
                        yield said

    def last_events(self) -> tuple[list[SaidEvent], bool]:
        return last_of(self.events())

    @cached_property
    def logs(self) -> tuple[TextLog, ...]:
        if self.run is None:
            return ()
        settings, workload = self.installation.settings, self.workload
        cluster = self.installation.entities.cluster(workload.cluster)
        working = ClusterStore(cluster, settings.home, settings.environ).working
        programs = logs_of_run(working, workload.name, self.instance.instance, self.run.run)
        found = [TextLog("spark-submit", str(file), False, reading(file), self.hide) for file in programs]
        if self.run.status is not None:
            captured = captured_logs(self.installation.instance, self.run.run, workload.op_name)
            shared = self.run.is_shared
            found += [TextLog(one.stream, one.place, shared, one.read, self.hide) for one in captured]
        return tuple(found)

    def as_data(self) -> dict[str, Any]:
        runs = {"log_of": self.run and self.run.as_data(), "runs": [one.as_data() for one in self.runs]}
        return {**self.instance.as_data(), **runs, "logs": [one.as_data() for one in self.logs]}

    @property
    def _assets(self) -> list[dg.AssetKey]:
        return names.workload_keys(self.workload)

    @property
    def _partition(self) -> str:
        return partition_of(self.workload, self.instance.instance)

    @cached_property
    def hide(self) -> Callable[[str], str]:
        keep_secret(known_secrets(self.installation, self.workload))
        return hidden

    @cached_property
    def _about_it(self) -> re.Pattern[str]:
        return re.compile(rf"{re.escape(self.workload.name)} ({_INSTANT})\b")

    def _said(self, entry: dg.EventLogEntry) -> SaidEvent | None:
        """None: the event is about other instances."""
        event, own = entry.dagster_event, format_instant(self.instance.instance)
        about = entry.asset_materialization or entry.asset_observation
        if about is not None:
            metadata = said_by(about)
            owner = (metadata.get("process", self.workload.name), metadata.get("nominal_time", own))
            if owner != (self.workload.name, own):
                return None  # of another workload that fills the asset too
            text = about.description or (event and event.message) or ""
        elif (of := self._about_it.match(entry.user_message)) and of[1] != own:
            return None
        else:
            text = _text_of(entry, own)
        at = datetime.fromtimestamp(entry.timestamp, UTC)
        is_shared = about is None and not (event is None and self._about_it.match(entry.user_message))
        kind = event.event_type_value if event is not None else "LOG"
        shared = is_shared and self.run is not None and self.run.is_shared
        return SaidEvent(at, kind, shared, self.hide(text))


def _text_of(entry: dg.EventLogEntry, own: str) -> str:
    """The message with its error; of a list of instances only the own line."""
    event = entry.dagster_event
    data = event.event_specific_data if event is not None else None
    failure, error = (getattr(data, name, None) for name in ("user_failure_data", "error"))
    if getattr(data, "first_step_failure_event", None) is not None:
        error = None  # the step said it
    text = event.message or entry.user_message if event is not None else entry.user_message
    if failure is not None:
        text = f"{text}\n{failure.description or ''}"
    elif error is not None:
        text = f"{text}\n{error.to_string()}"
    kept, is_kept = [], True
    for line in text.splitlines():
        if of := _OF_INSTANCE.match(line):
            is_kept = of[1] == own
        if is_kept:
            kept.append(line)
    return "\n".join(kept)
