"""Facts for the search for causes: from the ledger, from Dagster, and from stores for a few instances."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import EntityStatus, Status, statuses
from falcon_assets.errors import ExpressionError, StorageError
from falcon_assets.features.landing.store import seen_incomplete
from falcon_assets.features.triage.automation import Automation
from falcon_assets.features.triage.known import Data, Landing, Obstacle, Stretch, Work
from falcon_assets.features.triage.reasons import RunUnderWay, SlotsTaken
from falcon_assets.history import queries
from falcon_assets.history.dagster_internals.daemon import RUNS
from falcon_assets.history.dagster_internals.tables import UNFINISHED, KnownRun, known_runs, unfinished_jobs
from falcon_assets.history.database import locked
from falcon_assets.history.mapping import run_tags
from falcon_assets.hooks import hooks, merged
from falcon_assets.instances.coordination.cluster_reruns import reruns_on
from falcon_assets.instances.coordination.executors import Executors
from falcon_assets.instances.coordination.input_gates import input_gates
from falcon_assets.instances.coordination.pipeline_lock import coordinator_lock
from falcon_assets.instances.coordination.queues import Queues
from falcon_assets.instances.rules.newer_versions import NewerVersions
from falcon_assets.instances.rules.pending_reruns import PendingReruns
from falcon_assets.instances.rules.waiting import RerunPending
from falcon_assets.instances.runs.run_locks import run_lock
from falcon_assets.instances.store import known_instances as ledger
from falcon_assets.instances.store.consumed import last_used
from falcon_assets.instances.store.foreign_sources import foreign_source
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.instance_record import InstanceRecord, KnownFeedInstance
from falcon_assets.planning.reasons import LaunchPending, NotComplete, Reason
from falcon_assets.planning.retries import KnownInstance
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings
from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.snapshots import is_there, refreshed_at, why_not_there

ASKED_STORES = 3
"""Instances for which stores are queried: each may take long."""
_NAMED = 3


class TriageAnswers:
    """Answers from the state at one moment; must be created anew for each search."""

    def __init__(
        self,
        connection: Connection,
        store: EntityStore,
        settings: Settings,
        now: datetime,
        stores: int = ASKED_STORES,
    ) -> None:
        """``connection`` is to the up-to-date ledger with Dagster's tables; with 0 ``stores`` none is queried."""
        self._connection, self._store, self._settings, self._now = connection, store, settings, now
        self._automation = Automation(connection)
        self._runs: dict[str, KnownRun] = {}
        self._statuses: dict[tuple[str, str], EntityStatus] = {}
        self._stores_left, self._asks_stores = stores, stores > 0
        self._slots = lru_cache(maxsize=None)(self._find_slots)
        self._newer = lru_cache(maxsize=None)(self._find_newer)
        self._closed = lru_cache(maxsize=None)(self._find_closed)
        self._pending = lru_cache(maxsize=None)(self._find_pending)

    def instances(self, keys: Collection[Work]) -> Mapping[Work, KnownInstance]:
        found = ledger.known_instances(self._connection, keys)
        self._find_runs(one.record for one in found.values())
        return {Work(*key): known for key, known in found.items()}

    def feed_instances(self, keys: Collection[Data]) -> Mapping[Data, KnownFeedInstance]:
        return {Data(*key): one for key, one in ledger.known_feed_instances(self._connection, keys).items()}

    def available(self, cluster: str, feed: str, first: datetime, last: datetime) -> Collection[datetime]:
        return queries.available(self._connection, {(cluster, feed): (first, last)}).get((cluster, feed), set())

    def newest(self, cluster: str, feed: str, until: datetime, number: int) -> Collection[datetime]:
        return set(ledger.newest_available(self._connection, cluster, feed, until, number))

    def stretch(
        self, work: Work, feed: str, nominals: tuple[datetime, datetime], instances: tuple[datetime, datetime]
    ) -> Stretch:
        key = (work.cluster, feed)
        there = queries.available(self._connection, {key: instances}).get(key, set())
        gone = queries.evicted(self._connection, {key: instances}).get(key, {})
        stops = ledger.begun_or_over(self._connection, work.workload, work.cluster, *nominals)
        return Stretch(there, gone, stops)

    def newer(self, workload: Workload) -> NewerVersions | None:
        return self._newer(workload)

    def is_scheduled(self, workload: Workload) -> bool | None:
        entity = workload.entity
        key = (entity.kind, entity.name)
        if key not in self._statuses:
            self._statuses |= statuses(self._connection, [entity], self._now)
        status = self._statuses[key].status
        return None if status is Status.SUSPENDED else status is Status.RUNNING

    def run(self, work: Work, record: InstanceRecord) -> tuple[str, Reason, tuple[Obstacle, ...]]:
        run_id = record.run or ""
        run = self._runs.get(run_id)
        if run is None:
            return record.state.value, RunUnderWay(run_id, "is not in Dagster any more"), self._launching(work)
        if run.status not in UNFINISHED:
            return record.state.value, RunUnderWay(run_id, "has just ended"), ()
        if run.status == "STARTED":
            lock = run_lock(run_id, work.workload, work.cluster)
            if not record.queued_run and not locked(self._connection, [lock]):
                said = "has lost its worker: its coordinator ends it"
                return record.state.value, RunUnderWay(run_id, said), self._launching(work)
            since = f" since {format_instant(record.started)}" if record.started and not record.queued_run else ""
            return record.state.value, RunUnderWay(run_id, f"is at work{since}"), ()
        waits = run.status in ("QUEUED", "NOT_STARTED")
        obstacles = self._automation.daemon(RUNS) if waits and run_tags.FOREGROUND not in run.tags else ()
        return record.state.value, RunUnderWay(run_id, f"is {run.status}"), obstacles

    def not_started(self, work: Work) -> tuple[Reason, tuple[Obstacle, ...]]:
        workload = self._store.workload(work.workload, work.cluster)
        if workload is None:
            return LaunchPending(), ()
        pending = self._pending(work.cluster).get(workload.reads_on) or PendingReruns()
        rerun = pending.awaited(workload, work.nominal, {}) if pending.by_feed else None
        if rerun is not None:
            return RerunPending(*rerun), ()
        used, taken_by = self._slots(workload)
        if used >= workload.partitions.at_once:
            return SlotsTaken(workload.partitions.at_once, taken_by[:_NAMED], len(taken_by[_NAMED:])), ()
        admission = self._queues.admission(workload) if workload.queue else None
        if admission is not None and (refusal := admission.refusal):
            return refusal, ()
        choice = Executors(self._connection, self._store, work.cluster, datetime.now(UTC)).choice(workload)
        if choice is not None and (refusal := choice.refusal):
            return refusal, ()
        return LaunchPending(), self._launching(work)

    @cached_property
    def _queues(self) -> Queues:
        return Queues(self._settings.queues, self._store, unfinished_jobs(self._connection))

    def closed(self, workload: Workload) -> Mapping[Data, Reason]:
        return self._closed(workload)

    def not_checked(self, cluster: str) -> tuple[Obstacle, ...]:
        return self._automation.sensor(cluster, "quality")

    def withheld(self, keys: Collection[Data]) -> Mapping[Data, Reason]:
        asked = {(one.feed, one.cluster, one.instance): one for one in keys}
        found = merged(hooks().missing_reasons(connection=self._connection, store=self._store, keys=[*asked]))
        # Of what lacks its flag the store says more.
        return {asked[key]: reason for key, reason in found.items() if not isinstance(reason, NotComplete)}

    def landings(self, keys: Collection[Data]) -> Mapping[Data, Landing]:
        seen = seen_incomplete(self._connection, keys)
        found = {one: self._landing(one, was_seen=one in seen) for one in keys}
        for cluster in {one.cluster for one in keys} - self._store.clusters.keys():
            source = foreign_source(self._connection, cluster, self._store.everywhere[cluster].colo)
            own = (one for one in keys if source and one.cluster == cluster)
            found |= {one: replace(found[one], source=source.seen(one.feed, one.instance)) for one in own if source}
        return found

    def not_recorded(self, cluster: str, sensor: str = "collector") -> tuple[Obstacle, ...]:
        found = self._automation.sensor(cluster, sensor)
        # A coordinator that asks lives itself: by the daemon, or in falcon run, which needs none.
        return found if self._asks_stores else tuple(one for one in found if one.kind == "sensor")

    def _launching(self, work: Work) -> tuple[Obstacle, ...]:
        """Returns why the coordinator of an instance does nothing; empty: it works."""
        workload = self._store.workload(work.workload, work.cluster)
        pipeline = workload.pipelines[0] if workload else ""
        if not workload or locked(self._connection, [coordinator_lock(pipeline)]):
            return ()  # it decides in this moment, or falcon run does
        return self._automation.sensor(pipeline, "coordinator")

    def _find_runs(self, records: Iterable[InstanceRecord]) -> None:
        wanted = {one.run for one in records if one.in_flight}
        asked = sorted(one for one in wanted if one and one not in self._runs)
        if asked:
            self._runs.update(known_runs(self._connection, asked))

    def _find_pending(self, cluster: str) -> Mapping[str, PendingReruns]:
        return reruns_on(self._connection, self._store, cluster, (), self._now).pending

    def _find_closed(self, workload: Workload) -> Mapping[Data, Reason]:
        feeds = {(workload.reads_on, one.feed) for one in workload.gated}
        found = input_gates(self._connection, self._store, self._now)(feeds)
        return {Data(feed, cluster, at): one for (cluster, feed), of in found.items() for at, one in of.items()}

    def _find_newer(self, workload: Workload) -> NewerVersions | None:
        if NewerVersions.of(workload, {}, {}) is None:
            return None
        name, cluster = workload.name, workload.cluster
        used = last_used(self._connection, cluster, {name: (workload.reads_on, workload.inputs)})
        attempts = {name: workload.retry.attempts}
        # Of those before the end of all: what is not over.
        records = queries.records(self._connection, cluster, {name: workload.timeline.end}, attempts)
        return NewerVersions.of(workload, used.get(name, {}), records[name])

    def _find_slots(self, workload: Workload) -> tuple[int, tuple[str, ...]]:
        records = ledger.in_flight(self._connection, workload.name, workload.cluster)
        self._find_runs(records)
        held: dict[str, int] = {}
        for one in records:
            run_id = one.run or ""
            held[run_id] = held.get(run_id, 0) + 1
        used = sum(min(count, self._granted(run_id, workload)) for run_id, count in held.items())
        return used, tuple(f"{workload.name} {format_instant(one.nominal)}" for one in records)

    def _granted(self, run_id: str, workload: Workload) -> int:
        run = self._runs.get(run_id)
        return run_tags.slots_of(run.tags, 1) if run and run_tags.nominals_of(run.tags) else workload.parallel

    def _landing(self, one: Data, *, was_seen: bool) -> Landing:
        feed, cluster = self._store.feeds[one.feed], self._store.everywhere[one.cluster]
        try:
            path = InstancePaths(feed, cluster).data(one.instance)
        except ExpressionError as error:
            return Landing("", None, str(error))
        said = "it was not complete when it was seen last" if was_seen else ""
        unasked = Landing(path, True if was_seen else None, said)
        if self._stores_left <= 0 or one.instance > self._now:
            return unasked
        self._stores_left -= 1
        try:
            home, environ = self._settings.home, self._settings.environ
            readonly = one.cluster not in self._store.clusters
            store = store_of(feed, cluster, home, environ, readonly=readonly, roots=roots_of(self._settings))
            kind = kind_of(store)
            shown = kind.store.shown(path)
            refreshed = refreshed_at(kind, feed, path, self._settings.clock) if feed.snapshot else None
            if refreshed is not None and refreshed < one.instance:
                return Landing(shown, is_there=True, refreshed=refreshed)
            asked = (kind, feed, one.instance, path, self._settings.clock)
            if is_there(*asked):
                return Landing(shown, is_there=True, is_complete=True)
            return Landing(shown, *why_not_there(*asked))
        except StorageError as error:
            return Landing(path, None, str(error))
