"""What starts passes of retention between the ticks of their schedules: new feeds, and a simulated clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from falcon_assets.ledger.entities.status import Status, statuses
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration.mapping import run_tags
from falcon_assets.orchestration.platform.open_ledger import open_ledger
from falcon_assets.orchestration.runs.unfinished_runs import UNFINISHED
from falcon_assets.planning.instances.dagster_names import op_name
from falcon_assets.planning.retention.limits import pass_times
from falcon_assets.settings import Settings

_INTERVAL_SECONDS = 30


@dataclass(frozen=True)
class PassesOf:
    """The passes over some feeds of a cluster.

    Attributes:
        job: Whose runs they are.
        every: Their cadence.
        feeds: The feeds.
    """

    job: dg.JobDefinition
    every: Frequency
    feeds: Sequence[Feed]


def retention_sensor(cluster: Cluster, passes: Sequence[PassesOf], settings: Settings) -> dg.SensorDefinition:
    """Starts passes over ``cluster`` when a feed becomes scheduled, and by the falcon clock where it is simulated.

    Dagster's schedules go by the real clock, and hours are minutes or nothing on a simulated one.
    """

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
    """Whether a pass of the same has not ended: a fast clock must not fill the queue with passes that wait."""
    return bool(instance.get_run_records(dg.RunsFilter(job_name=job.name, statuses=UNFINISHED), limit=1))
