"""Late arrival: requests reruns of succeeded instances whose inputs changed, or reports that a change is too late."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, partial

import dagster as dg
from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status, statuses
from falcon_assets.errors import count_of
from falcon_assets.features.late.rules import judge, too_late_text
from falcon_assets.history.database import lock_in_transaction
from falcon_assets.history.events.event_log import observation
from falcon_assets.history.events.instance_event import InstanceEvent
from falcon_assets.history.events.process_instances import CameTooLate
from falcon_assets.history.folding.subscriptions import keep_wanted
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables.row_values import ProcessKey
from falcon_assets.instances.coordination.coordinator import pipelines
from falcon_assets.instances.rules.replaced_outputs import replaced_by
from falcon_assets.instances.store import changed_inputs, reruns
from falcon_assets.instances.store.newest_instances import newest_written
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.compactions import CompactionWorkload
from falcon_assets.planning.dagster_names import op_name
from falcon_assets.planning.instance_record import LATE, LateChange, RerunRequest
from falcon_assets.planning.late_inputs import late_inputs
from falcon_assets.planning.transfers import ExportWorkload
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings

_INTERVAL_SECONDS = 10
_SHOWN = 5
_SAID_AT_ONCE = 500
"""Changes that one tick reports as too late; the next reports the others."""


@dataclass(frozen=True)
class LateOutlook:
    """The decisions about late data.

    Attributes:
        requested: The changes for which an instance runs again, by (workload, cluster, nominal time).
        too_late: Changes after their cut-off, in words.
        waiting: Why instances with changed inputs do not run again yet.
        wake_at: When the first of those is due; None: none waits.
    """

    requested: Mapping[ProcessKey, tuple[LateChange, ...]] = field(default_factory=dict)
    too_late: tuple[str, ...] = ()
    waiting: Mapping[ProcessKey, str] = field(default_factory=dict)
    wake_at: datetime | None = None


@dataclass(frozen=True)
class LateArrivalHandler:
    clock: Callable[[], datetime]
    workloads: Sequence[Workload]

    def decide(self, ledger: Ledger) -> LateOutlook:
        """Brings the ledger up to date, records reruns, and reports changes that are too late.

        Concurrent calls wait for each other (a lock for each pipeline); the second finds nothing to add.
        """
        cut_offs = late_inputs(self.workloads)
        if not cut_offs:
            return LateOutlook()
        with self._alone(ledger):
            ledger.catch_up()
            return self._decide(ledger, cut_offs)

    def _decide(self, ledger: Ledger, cut_offs: Mapping[tuple[str, str, str], timedelta]) -> LateOutlook:
        now = self.clock()
        asked: dict[ProcessKey, RerunRequest] = {}
        new: set[ProcessKey] = set()
        too_late: list[tuple[ProcessKey, LateChange, timedelta]] = []
        waiting: dict[ProcessKey, str] = {}
        due: list[datetime] = []
        with ledger.engine.begin() as connection:
            status = statuses(connection, [one.entity for one in self.workloads], now)
            watched = {
                one: cut_off
                for one, cut_off in cut_offs.items()
                if status[self._entity(*one[:2])].status is not Status.SUBMITTED
            }
            changed = changed_inputs.changed(connection, watched)
            idle = self._too_few_files(connection, changed) | self._passed(connection, changed)
            for key, found in changed.items():
                name, cluster, nominal = key
                workload = self._by_place[cluster, name]
                if key in idle or workload.late is None or not workload.timeline.contains(nominal):
                    continue
                own = {one[2]: cut_off for one, cut_off in watched.items() if one[:2] == (cluster, name)}
                verdict = judge(workload.late, nominal, own, found.newest, found.arrivals, now)
                if verdict.rerun:
                    request = _request(found, verdict.rerun, now)
                    if request != found.request:
                        asked[key] = request
                    if found.request is None or found.request.attempt != request.attempt:
                        new.add(key)
                elif verdict.due_at is not None:
                    waiting[key] = f"is run again at {format_instant(verdict.due_at)}: {_named(found)} changed"
                    due.append(verdict.due_at)
                too_late += ((key, change, after) for change, after in verdict.too_late)
            reruns.request(connection, asked)
            events = [_told(key, request) for key, request in asked.items() if key in new]
            keep_wanted(connection, events)
        said = tuple(self._say(ledger.instance, *one, now) for one in _once_each(too_late)[:_SAID_AT_ONCE])
        requested = {key: request.changes for key, request in asked.items()}
        return LateOutlook(requested, said, waiting, min(due, default=None))

    def _too_few_files(self, connection: Connection, changed: Collection[ProcessKey]) -> set[ProcessKey]:
        """The compactions that wait for more files."""
        found = set[ProcessKey]()
        for compaction in (one for one in self.workloads if isinstance(one, CompactionWorkload) and one.late_files):
            own = [key for key in changed if key[:2] == (compaction.name, compaction.cluster)]
            come = changed_inputs.files_come(connection, own, compaction.entity.name)
            found |= {key for key, number in come.items() if number <= compaction.late_files}
        return found

    def _passed(self, connection: Connection, changed: Collection[ProcessKey]) -> set[ProcessKey]:
        """The exports whose target holds a newer instance in their place."""
        places = {(cluster, name) for name, cluster, _ in changed}
        exports = [
            one for one in self.workloads if isinstance(one, ExportWorkload) and (one.cluster, one.name) in places
        ]
        newest = newest_written(connection, exports)
        return {key for key in changed if newest and replaced_by(self._by_place[key[1], key[0]], key[2], newest)}

    def _say(
        self, instance: dg.DagsterInstance, key: ProcessKey, change: LateChange, after: timedelta, now: datetime
    ) -> str:
        name, cluster, nominal = key
        workload = self._by_place[cluster, name]
        partitions = workload.partitions
        said = too_late_text(name, nominal, change, after)
        asset = names.workload_keys(workload)[0]
        partition = key_of(partitions.timeline, partitions.partition_of(nominal))
        late = CameTooLate(name, cluster, nominal, change.feed, change.instance, change.after, now)
        instance.report_runless_asset_event(observation(asset, partition, late, description=said))
        return said

    @cached_property
    def _by_place(self) -> dict[tuple[str, str], Workload]:
        return {(one.cluster, one.name): one for one in self.workloads}

    def _entity(self, cluster: str, name: str) -> tuple[str, str]:
        entity = self._by_place[cluster, name].entity
        return entity.kind, entity.name

    @contextmanager
    def _alone(self, ledger: Ledger) -> Iterator[None]:
        with ledger.engine.begin() as connection:
            for pipeline in sorted({one.pipelines[0] for one in self.workloads}):
                lock_in_transaction(connection, f"falcon late arrival {pipeline}")
            yield


def _request(found: changed_inputs.Changed, changes: tuple[LateChange, ...], now: datetime) -> RerunRequest:
    """Keeps an unanswered request, with the present changes."""
    record, before = found.record, found.request
    if before is not None and before.attempt == record.attempt:
        return replace(before, changes=changes)
    return RerunRequest(LATE, record.attempt, record.failures, now, changes)


def _told(key: ProcessKey, request: RerunRequest) -> InstanceEvent:
    changed = ", ".join(f"{one.feed} {format_instant(one.instance)}" for one in request.changes[:_SHOWN])
    reason = f"runs again: {changed} changed"
    return InstanceEvent(EventKind.LATE, "process", *key, request.requested_at, str(request.attempt), reason)


def _named(found: changed_inputs.Changed) -> str:
    change = found.arrivals[0].change
    return f"{change.feed} {format_instant(change.instance)}"


def _once_each(
    too_late: Sequence[tuple[ProcessKey, LateChange, timedelta]],
) -> list[tuple[ProcessKey, LateChange, timedelta]]:
    return list({(key, change.feed, change.instance): (key, change, after) for key, change, after in too_late}.values())


def late_arrival_sensors(store: EntityStore, settings: Settings) -> Iterator[dg.SensorDefinition]:
    for pipeline, workloads in pipelines(store.active_workloads).items():
        if late_inputs(workloads):
            yield _sensor(pipeline, LateArrivalHandler(settings.now, workloads), partial(open_ledger, settings))


def _sensor(
    pipeline: str, late_arrival: LateArrivalHandler, ledger_of: Callable[[dg.DagsterInstance], Ledger]
) -> dg.SensorDefinition:
    @dg.sensor(
        name=op_name(pipeline, "late_arrival"),
        description=f"Asks for reruns of the pipeline {pipeline} where inputs changed after they were read",
        minimum_interval_seconds=_INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        found = late_arrival.decide(ledger_of(context.instance))
        for said in found.too_late:
            context.log.warning(said)
        for (name, cluster, nominal), changes in found.requested.items():
            what = ", ".join(f"{one.feed} {format_instant(one.instance)}" for one in changes)
            context.log.info(f"{name} on {cluster} {format_instant(nominal)} is to run again: {what} changed")
        return dg.SkipReason(_in_words(found))

    return evaluate


def _in_words(found: LateOutlook) -> str:
    lines = []
    if found.requested:
        again = count_of(
            len(found.requested),
            "instance is to run again, because what it",
            "instances are to run again, because what they",
        )
        lines.append(f"{again} had read changed")
    if found.too_late:
        came = count_of(len(found.too_late), "change came after its cut-off", "changes came after their cut-off")
        lines.append(f"{came}: {found.too_late[0]}")
    for (name, cluster, nominal), why in list(found.waiting.items())[:_SHOWN]:
        lines.append(f"{name} on {cluster} {format_instant(nominal)} {why}")
    if len(found.waiting) > _SHOWN:
        lines.append(f"... and {len(found.waiting) - _SHOWN} more instances wait for their check")
    return "\n".join(lines) or "nothing changed after it was read"
