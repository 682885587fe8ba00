"""Retention in Dagster: per cluster a job and a schedule for each cadence, and a sensor for new feeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.ledger.status import Status, statuses
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.orchestration import names
from falcon_assets.orchestration.open_ledger import open_ledger
from falcon_assets.orchestration.retention_events import record_in_run
from falcon_assets.orchestration.retention_pass import RetentionPass
from falcon_assets.planning.cron import cron_of
from falcon_assets.planning.retention_rules import cadence
from falcon_assets.planning.timeline import Timeline
from falcon_assets.settings import Settings

_INTERVAL_SECONDS = 30
"""Between two looks for feeds that became scheduled."""
_EPOCH, _DOOMSDAY = (datetime(year, 1, 1, tzinfo=timezone.utc) for year in (2000, 2200))


@dataclass(frozen=True)
class RetentionDefinitions:
    """What retention adds to a code location."""

    jobs: Sequence[dg.JobDefinition]
    schedules: Sequence[dg.ScheduleDefinition]
    sensors: Sequence[dg.SensorDefinition]


def retention_definitions(store: EntityStore, settings: Settings) -> RetentionDefinitions:
    """Jobs, schedules and sensors for all feeds that declare retention; they run unless somebody turns them off."""
    jobs: list[dg.JobDefinition] = []
    schedules: list[dg.ScheduleDefinition] = []
    sensors: list[dg.SensorDefinition] = []
    for cluster in store.clusters.values():
        own: dict[str, tuple[dg.JobDefinition, Sequence[Feed]]] = {}
        for every, feeds in _by_cadence(store, cluster).items():
            job = retention_job(RetentionPass(store, cluster, feeds, settings), every)
            jobs.append(job)
            schedules.append(_schedule(job, every))
            own[job.name] = (job, feeds)
        if own:
            sensors.append(_sensor(cluster, own, settings))
    return RetentionDefinitions(jobs, schedules, sensors)


def _by_cadence(store: EntityStore, cluster: Cluster) -> dict[Frequency, list[Feed]]:
    found: dict[Frequency, list[Feed]] = {}
    for feed in store.feeds.values():
        every = cadence(feed, cluster.name)
        if every is not None:
            found.setdefault(every, []).append(feed)
    return found


def retention_job(retention: RetentionPass, every: Frequency) -> dg.JobDefinition:
    """The job whose runs are passes: ``<cluster>__retention_hours_6``."""
    cluster = retention.cluster.name
    name = names.op_name(cluster, f"retention_{every.unit.value}_{every.count}")

    @dg.op(name=f"{name}_evict", description=f"Evicts what is too old on {cluster}")
    def evict(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        ledger = open_ledger(retention.settings, context.instance)
        passed = retention.run(ledger, context.run_id, record_in_run(context))
        context.log.info(f"{passed.instances} instances were evicted, {passed.bytes} bytes")
        if passed.problems:
            raise dg.Failure("\n".join([f"{len(passed.problems)} could not be evicted:", *passed.problems]))

    @dg.job(
        name=name,
        description=f"Retention on {cluster}, {every}: {', '.join(feed.name for feed in retention.feeds)}",
        tags=names.tags({"falcon/cluster": cluster}),
    )
    def job() -> None:
        evict()

    return job


def _schedule(job: dg.JobDefinition, every: Frequency) -> dg.ScheduleDefinition:
    timeline = Timeline(_EPOCH, _DOOMSDAY, every, "UTC")

    @dg.schedule(
        name=f"{job.name}_schedule",
        job=job,
        cron_schedule=cron_for(every),
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        if timeline.contains(context.scheduled_execution_time.astimezone(timezone.utc)):
            return dg.RunRequest()
        return dg.SkipReason(f"it is not {every} since the last pass")

    return evaluate


def cron_for(every: Frequency) -> str:
    """A cron line in UTC whose ticks hold all instances of ``every`` since 2000, and few others."""
    cron = cron_of(Timeline(_EPOCH, _DOOMSDAY, every, "UTC"))
    if cron is not None and not cron.exclusions:
        return cron.schedule
    if every.is_absolute:
        step = math.gcd(every.length // timedelta(minutes=1), 60)
        return f"*/{step} * * * *" if step < 60 else "0 * * * *"
    return "0 0 * * *" if every.unit is TimeUnit.DAYS else "0 0 1 * *"


def _sensor(
    cluster: Cluster, jobs: Mapping[str, tuple[dg.JobDefinition, Sequence[Feed]]], settings: Settings
) -> dg.SensorDefinition:
    @dg.sensor(
        name=names.op_name(cluster.name, "retention_at_once"),
        description=f"Starts retention on {cluster.name} when a feed becomes scheduled",
        minimum_interval_seconds=_INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        jobs=[job for job, _ in jobs.values()],
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        feeds = [feed for _, some in jobs.values() for feed in some]
        with open_ledger(settings, context.instance).engine.begin() as connection:
            found = statuses(connection, feeds, settings.now())
        since = {name: one.since.isoformat() for (_, name), one in found.items() if one.status is Status.RUNNING}
        requests = list(_requests(jobs, since, context.cursor or ""))
        context.update_cursor(max([context.cursor or "", *since.values()]))
        return requests or dg.SkipReason("no feed became scheduled")

    return evaluate


def _requests(
    jobs: Mapping[str, tuple[dg.JobDefinition, Sequence[Feed]]], since: Mapping[str, str], seen: str
) -> Iterator[dg.RunRequest]:
    for name, (_, feeds) in jobs.items():
        new = [since[feed.name] for feed in feeds if feed.name in since and since[feed.name] > seen]
        if new:
            yield dg.RunRequest(run_key=f"{name} since {max(new)}", job_name=name)
