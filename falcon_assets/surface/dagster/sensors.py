"""Sensors: a collector per cluster, a coordinator per pipeline, and the delivery of events to their receivers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.catalog.watched_definitions import WatchedDefinitions
from falcon_assets.errors import count_of
from falcon_assets.features.landing.arrivals import Arrivals
from falcon_assets.features.landing.circuit_breakers import Breakers
from falcon_assets.features.landing.collector import Collection, Collector
from falcon_assets.features.landing.old_instances import OldInstances
from falcon_assets.history.dagster_internals.server_threads import waiting_ticks
from falcon_assets.history.platform.open_ledger import open_ledger, tables_engine
from falcon_assets.history.platform.postgres import database_url
from falcon_assets.instances.coordination.coordinator import Coordinator, Outlook, pipelines
from falcon_assets.instances.coordination.pipeline_lock import pipelines_held
from falcon_assets.instances.coordination.standing_decisions import StandingDecisions
from falcon_assets.instances.coordination.ticks import (
    AGAIN_SECONDS,
    INTERVAL_SECONDS,
    WaitingNews,
    done,
    nothing_started,
    rounds,
)
from falcon_assets.instances.outbox.delivery import Delivery
from falcon_assets.instances.outbox.recording import EventRecording
from falcon_assets.instances.runs.run_definitions import DefinitionRecording
from falcon_assets.planning.dagster_names import op_name, source_collector
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings

_COLLECT_SECONDS = 25.0
"""Of the 60 that Dagster gives a tick: the last instance begun within it may be large."""

_PASS_SECONDS = 4.5
"""From one round of the passes over old data to the next."""
_DELIVER_SECONDS = 15

_CANNOT_START = """no run is started: each reads the definitions anew, and they were changed and have problems now:
{}"""


class _Room:
    """For ticks that wait; asked once, as opening the instance takes longer than a tick."""

    def __init__(self) -> None:
        self._at_once: int | None = None

    def at_once(self, context: dg.SensorEvaluationContext) -> int:
        if self._at_once is None:
            self._at_once = waiting_ticks(context.instance)
        return self._at_once


def sensors(
    store: EntityStore,
    settings: Settings,
    jobs: Mapping[str, dg.UnresolvedAssetJobDefinition],
    recording: DefinitionRecording,
) -> Iterator[dg.SensorDefinition]:
    """Returns collectors, coordinators, which start runs of ``jobs``, and at most one that delivers events.

    They run unless a user stops them.
    """
    breakers, definitions, room = Breakers(), WatchedDefinitions(store.root), _Room()
    for cluster in store.clusters.values():
        yield _collector(Collector(store, cluster, settings, breakers), settings, recording, room)
    for source in store.foreign_sources:
        yield _collector(Collector(store, store.everywhere[source], settings, breakers), settings, recording, room)
    for pipeline, workloads in pipelines(store.active_workloads).items():
        yield _coordinator(store, pipeline, workloads, settings, jobs, definitions, recording, room)
    events = EventRecording(store, settings)
    if events.wanted:  # named after the first cluster: a code location may have several sets of entities
        yield _notifications(op_name(min(store.clusters), "notifications"), events, settings)


def _collector(
    collector: Collector, settings: Settings, recording: DefinitionRecording, room: _Room
) -> dg.SensorDefinition:
    old_instances, arrivals, cluster = OldInstances(collector), Arrivals(collector), collector.cluster
    lands = f"Records what lands from outside on {cluster.name}"
    copied = f"Records what is to be copied from {cluster.name} of colo {cluster.colo}"

    @dg.sensor(
        name=source_collector(cluster.name) if collector.is_foreign else op_name(cluster.name, "collector"),
        description=copied if collector.is_foreign else lands,
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        recorded, pass_at, wait = 0, 0.0, partial(arrivals.wait, tables_engine(database_url(settings)))
        recording.record(open_ledger(settings, context.instance))
        for _ in rounds(settings.clock, room.at_once(context), wait):
            ledger = open_ledger(settings, context.instance)
            with arrivals.look(ledger.engine, everything=not pass_at) as only:
                found = collector.collect(ledger, _COLLECT_SECONDS, only=only)
            recorded, problems = recorded + found.recorded, found.problems
            if time.monotonic() >= pass_at:  # now and then is enough: old data waits for minutes
                old, pass_at = old_instances.collect(ledger), time.monotonic() + _PASS_SECONDS
                recorded, problems = recorded + old.recorded, old.problems | problems
            if problems:
                raise dg.Failure("\n".join([*(f"{feed}: {why}" for feed, why in problems.items()), *_left(found)]))
        return dg.SkipReason("; ".join([f"{count_of(recorded, 'instance')} landed", *_left(found)]))

    return evaluate


def _left(found: Collection) -> Iterator[str]:
    if found.left:
        yield f"{count_of(found.left, 'feed is', 'feeds are')} left for the next tick"
    for why, feeds in found.left_out.items():
        yield f"{count_of(feeds, 'feed is', 'feeds are')} left out: {why}"


def _coordinator(
    store: EntityStore,
    pipeline: str,
    workloads: Sequence[Workload],
    settings: Settings,
    jobs: Mapping[str, dg.UnresolvedAssetJobDefinition],
    definitions: WatchedDefinitions,
    recording: DefinitionRecording,
    room: _Room,
) -> dg.SensorDefinition:
    decisions, waiting = StandingDecisions(Coordinator(store, settings, workloads)), WaitingNews()

    @dg.sensor(
        name=op_name(pipeline, "coordinator"),
        description=f"Starts the instances of the pipeline {pipeline} when their time and their inputs have come",
        minimum_interval_seconds=AGAIN_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        jobs=[jobs[name] for name in sorted({one.job_name for one in workloads})],
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        if problem := definitions.problem():
            raise dg.Failure(_CANNOT_START.format(problem))
        outlook = Outlook((), {}, decisions.coordinator.refused)
        tables = tables_engine(database_url(settings))
        for _ in rounds(settings.clock, room.at_once(context), partial(decisions.wait, tables)):
            if decisions.is_quiet(tables):
                continue
            ledger = open_ledger(settings, context.instance)
            recording.record(ledger)
            with pipelines_held(ledger, [pipeline]) as busy:
                if busy:
                    return dg.SkipReason("falcon run is working on this pipeline")
                outlook = decisions.tick(ledger)
            for run_id in outlook.dead:
                context.log.warning(f"the run {run_id} was ended: its worker is gone")
            for line in (*done(outlook), *waiting.news(outlook.decisions)):
                context.log.info(line)
            if outlook.runs:
                break
        for (name, cluster), problem in outlook.problems.items():
            context.log.error(f"{name} on {cluster}: {problem}")
        requests = [
            dg.RunRequest(run_key=run.run_key, job_name=run.job_name, tags=dict(run.tags)) for run in outlook.runs
        ]
        waits = {key: one.waits for key, one in decisions.standing.items()}
        return requests or dg.SkipReason(nothing_started(waits, outlook.problems))

    return evaluate


def _notifications(name: str, recording: EventRecording, settings: Settings) -> dg.SensorDefinition:
    delivery = Delivery(recording.clusters, _real_now, recording.receivers)

    @dg.sensor(
        name=name,
        description="Sends notifications of what happens to instances",
        minimum_interval_seconds=_DELIVER_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        ledger = open_ledger(settings, context.instance)
        noted = recording.record(ledger, _real_now())
        delivered = delivery.deliver(ledger)
        for one in delivered:
            (context.log.warning if one.problem or one.refused else context.log.info)(str(one))
        sent = sum(not one.problem for one in delivered)
        return dg.SkipReason(f"{count_of(noted, 'event')} noted; {count_of(sent, 'message')} sent")

    return evaluate


def _real_now() -> datetime:
    return datetime.now(UTC)
