"""Jobs, schedules and sensors of retention; sensors start passes for new feeds, and by a simulated clock."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status, statuses
from falcon_assets.errors import count_of
from falcon_assets.features.retention.disks import Disk, RoomPass, disks_of
from falcon_assets.features.retention.passes import RetentionPass
from falcon_assets.history.dagster_internals.events import record_in_step
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.instances.runs.dead_runs import UNFINISHED
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.cron import cron_of
from falcon_assets.planning.dagster_names import op_name
from falcon_assets.planning.eviction import OFTEN, cadence, pass_times
from falcon_assets.settings import Settings

_INTERVAL_SECONDS = 30
_LOOK_AT_DISKS = Frequency(15, TimeUnit.MINUTES)


@dataclass(frozen=True)
class PassesOf:
    job: dg.JobDefinition
    every: Frequency
    feeds: Sequence[Feed]


def retention_sensor(cluster: Cluster, passes: Sequence[PassesOf], settings: Settings) -> dg.SensorDefinition:
    """Starts passes for new feeds, and by a simulated clock: Dagster's schedules follow the real one."""

    @dg.sensor(
        name=op_name(cluster.name, "retention_at_once"),
        description=f"Starts retention on {cluster.name} when a feed becomes scheduled",
        minimum_interval_seconds=_INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        jobs=[one.job for one in passes],
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        now = settings.now()
        feeds = [feed for one in passes for feed in one.feeds]
        with open_ledger(settings, context.instance).engine.begin() as connection:
            found = statuses(connection, feeds, now)
        since = {name: one.since.isoformat() for (_, name), one in found.items() if one.status is Status.RUNNING}
        seen, _, last_now = (context.cursor or "").partition(" ")
        requests = list(_for_new_feeds(passes, since, seen, now.isoformat()))
        if settings.clock.origin is not None and last_now:
            over = _whose_time_is_over(passes, datetime.fromisoformat(last_now), now)
            free = [one for one in over if not _is_under_way(context.instance, one.job)]
            requests += [_at(one, now, settings.clock.tag) for one in free]
            if len(free) < len(over):
                now = datetime.fromisoformat(last_now)  # asked again; a run key starts no second run
        context.update_cursor(f"{max([seen, *since.values()])} {now.isoformat()}")
        for one in requests:
            context.log.info(f"starts {one.run_key}")
        by_clock = ", and no pass is due by the clock" if settings.clock.origin is not None else ""
        return requests or dg.SkipReason(f"no feed became scheduled{by_clock}; the schedules start the other passes")

    return evaluate


def _for_new_feeds(
    passes: Sequence[PassesOf], since: Mapping[str, str], seen: str, now: str
) -> Iterator[dg.RunRequest]:
    if seen > now:  # the clock was set back: what is not new has a run key that starts no second run
        since, seen = {name: at for name, at in since.items() if at <= now}, ""
    for one in passes:
        new = [since[feed.name] for feed in one.feeds if feed.name in since and since[feed.name] > seen]
        if new:
            yield dg.RunRequest(
                run_key=f"{one.job.name} since {max(new)}", job_name=one.job.name, tags=run_tags.BY_ITSELF
            )


def _whose_time_is_over(passes: Sequence[PassesOf], last_now: datetime, now: datetime) -> list[PassesOf]:
    times = {one.job.name: pass_times(one.every) for one in passes}
    return [
        one
        for one in passes
        if times[one.job.name].index_at_or_before(now) > times[one.job.name].index_at_or_before(last_now)
    ]


def _at(one: PassesOf, now: datetime, clock: str) -> dg.RunRequest:
    times = pass_times(one.every)
    instant = format_instant(times.instance(times.index_at_or_before(now)))
    # The same time by a clock that was started anew is another time.
    return dg.RunRequest(
        run_key=f"{one.job.name} at {instant} by {clock}", job_name=one.job.name, tags=run_tags.BY_ITSELF
    )


def _is_under_way(instance: dg.DagsterInstance, job: dg.JobDefinition) -> bool:
    """Returns whether a pass of this job is unfinished: a fast clock must not fill the queue."""
    return bool(instance.get_run_records(dg.RunsFilter(job_name=job.name, statuses=UNFINISHED), limit=1))


@dataclass(frozen=True)
class RetentionDefinitions:
    jobs: Sequence[dg.JobDefinition]
    schedules: Sequence[dg.ScheduleDefinition]
    sensors: Sequence[dg.SensorDefinition]


def retention_definitions(store: EntityStore, settings: Settings) -> RetentionDefinitions:
    jobs: list[dg.JobDefinition] = []
    schedules: list[dg.ScheduleDefinition] = []
    sensors: list[dg.SensorDefinition] = []
    for cluster in store.clusters.values():
        own: list[PassesOf] = []
        included = (feed for feed in store.feeds.values() if store.includes(cluster.name, feed.name))
        for every, feeds in _by_cadence(included, cluster.name).items():
            job = retention_job(RetentionPass(store, cluster, feeds, settings), every)
            jobs.append(job)
            schedules.append(_schedule(job, every, settings.clock))
            own.append(PassesOf(job, every, feeds))
        if own:
            sensors.append(retention_sensor(cluster, own, settings))
        else:
            nothing = RetentionPass(store, cluster, (), settings)
            job = retention_job(nothing, None)
            jobs.append(job)
            schedules.append(_leftovers_schedule(job, nothing))
        if cluster.interfaces.write.max_usage:
            jobs.append(job := room_job(cluster, disks := disks_of(store, cluster, settings)))
            schedules.append(_room_schedule(job, disks))
    return RetentionDefinitions(jobs, schedules, sensors)


def _by_cadence(feeds: Iterable[Feed], cluster: str) -> dict[Frequency, list[Feed]]:
    found: dict[Frequency, list[Feed]] = {}
    for feed in feeds:
        every = cadence(feed, cluster)
        if every is not None:
            found.setdefault(every, []).append(feed)
    return found


def retention_job(retention: RetentionPass, every: Frequency | None) -> dg.JobDefinition:
    """Builds the job of passes: ``<cluster>__retention_hours_6``; without ``every`` it completes earlier passes."""
    cluster = retention.cluster.name
    name = op_name(cluster, f"retention_{every.unit.value}_{every.count}" if every else "retention_leftovers")
    feeds = f"{every}: {', '.join(feed.name for feed in retention.feeds)}" if every else "what earlier passes left"

    @dg.op(name=f"{name}_evict", description=f"Evicts what is too old on {cluster}", out=dg.Out(dg.Nothing))
    def evict(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        ledger = open_ledger(retention.settings, context.instance)
        passed = retention.run(ledger, context.run_id, record_in_step(context))
        evicted = count_of(passed.instances, "instance was", "instances were")
        context.log.info(f"{evicted} evicted, {count_of(passed.bytes, 'byte')}")
        if passed.copies:
            never_came = count_of(passed.copies, "instance")
            context.log.info(f"what was staged of {never_came} that never came was removed")
        if passed.versions:
            went = count_of(passed.versions, "version was", "versions were")
            context.log.info(f"{went} evicted that had been replaced")
        if passed.archives:
            context.log.info(f"{count_of(passed.archives, 'instance was', 'instances were')} removed from the archive")
        if passed.problems:
            raise dg.Failure("\n".join([f"{len(passed.problems)} could not be evicted:", *passed.problems]))

    @dg.job(
        name=name,
        description=f"Retention on {cluster}, {feeds}",
        tags=names.tags({"falcon/cluster": cluster}),
        executor_def=dg.in_process_executor,
    )
    def job() -> None:
        evict()

    return job


def room_job(cluster: Cluster, disks: Sequence[Disk]) -> dg.JobDefinition:
    """Builds the job that makes room on disks: ``<cluster>__retention_max_usage``."""
    name, limit = op_name(cluster.name, "retention_max_usage"), cluster.interfaces.write.max_usage

    @dg.op(name=f"{name}_make_room", description=f"Makes room on the disk of {cluster.name}", out=dg.Out(dg.Nothing))
    def make_room(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        problems = list[str]()
        for disk in (one for one in disks if one.excess()):
            passed = RoomPass(disk).run(open_ledger(disk.settings, context.instance), record_in_step(context))
            went = [
                count_of(passed.versions, "kept version"),
                count_of(passed.archives, "archived instance"),
                count_of(passed.held, "output that was kept aside", "outputs that were kept aside"),
            ]
            context.log.info(f"removed from {disk.name} {', '.join(went)}: {count_of(passed.bytes, 'byte')}")
            if disk.excess():
                context.log.warning(f"{disk.reason()}: nothing more is there that may go")
            problems += passed.problems
        if problems:
            raise dg.Failure("\n".join([f"{len(problems)} could not be removed:", *problems]))

    @dg.job(
        name=name,
        description=f"Makes room on the disk of {cluster.name} when it is fuller than {limit}",
        tags=names.tags({"falcon/cluster": cluster.name}),
        executor_def=dg.in_process_executor,
    )
    def job() -> None:
        make_room()

    return job


def _room_schedule(job: dg.JobDefinition, disks: Sequence[Disk]) -> dg.ScheduleDefinition:
    """By the real clock, as disks get full by it; a tick asks the file system how full it is."""

    @dg.schedule(
        name=f"{job.name}_schedule",
        job=job,
        description=job.description,
        cron_schedule=cron_for(_LOOK_AT_DISKS),
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        if any(disk.excess() for disk in disks):
            return dg.RunRequest(tags=run_tags.BY_ITSELF)
        return dg.SkipReason(f"no disk is fuller than {disks[0].cluster.interfaces.write.max_usage}")

    return evaluate


def _schedule(job: dg.JobDefinition, every: Frequency, clock: Clock) -> dg.ScheduleDefinition:
    timeline = pass_times(every)

    @dg.schedule(
        name=f"{job.name}_schedule",
        job=job,
        description=f"Every {every}: {job.description}",
        cron_schedule=cron_for(every),
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        if clock.origin is not None:
            return dg.SkipReason("the clock is simulated: the cluster's retention sensor starts the passes")
        if timeline.contains(context.scheduled_execution_time.astimezone(UTC)):
            return dg.RunRequest(tags=run_tags.BY_ITSELF)
        return dg.SkipReason(f"it is not {every} since the last pass")

    return evaluate


def _leftovers_schedule(job: dg.JobDefinition, retention: RetentionPass) -> dg.ScheduleDefinition:
    """Without leftovers, a tick costs a read of an index and a listing of a folder."""

    @dg.schedule(
        name=f"{job.name}_schedule",
        job=job,
        description=f"Completes on {retention.cluster.name} what passes of retention left when they were killed",
        cron_schedule=cron_for(OFTEN),
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        if retention.has_leftovers(open_ledger(retention.settings, context.instance)):
            return dg.RunRequest(tags=run_tags.BY_ITSELF)
        return dg.SkipReason("no feed declares retention here, and earlier passes left nothing")

    return evaluate


def cron_for(every: Frequency) -> str:
    """Returns a cron line in UTC whose ticks are all instances of ``every`` since 2000, and few others."""
    cron = cron_of(pass_times(every))
    if cron is not None and not cron.exclusions:
        return cron.schedule
    if every.is_absolute:
        step = math.gcd(every.length // timedelta(minutes=1), 60)
        return f"*/{step} * * * *" if step < 60 else "0 * * * *"
    return "0 0 * * *" if every.unit is TimeUnit.DAYS else "0 0 1 * *"
