"""The jobs of a flow: its imports, copies and exports, and what is known of an instance of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select, tuple_

from falcon_assets.catalog.store import EntityStore
from falcon_assets.history.tables.transfers import DELIVERIES, TRANSFERS
from falcon_assets.instances.views.query import InstanceInfo
from falcon_assets.model.instant import Instant
from falcon_assets.operations.operation import Result
from falcon_assets.planning.flows.plans import FlowPlan
from falcon_assets.planning.flows.routes import Hop
from falcon_assets.planning.flows.topology import PlaceKey
from falcon_assets.planning.transfers import ExportWorkload
from falcon_assets.planning.workloads import Workload

OVER = ("SUCCEEDED", "FAILED", "TIMED_OUT", "KILLED", "SKIPPED")
_FAILED = ("FAILED", "TIMED_OUT", "KILLED")


@dataclass(frozen=True)
class FlowJob:
    """A hop, and the workload that makes it."""

    hop: Hop
    workload: Workload


@dataclass(frozen=True)
class JobState(Result):
    """An instance of a job.

    Attributes:
        destination: Where data goes, as ``cluster lake``.
        rows: None: not counted, as of copies.
        low_watermark: From where changes were read, likewise up to where; None: all was read.
        started: On the falcon clock; likewise ``ended``.
        message: Why it waits, or what went wrong.
    """

    job: str
    kind: str
    source: str
    destination: str
    executor: str
    state: str
    attempt: int
    rows: int | None
    low_watermark: str | None
    high_watermark: str | None
    started: datetime | None
    ended: datetime | None
    message: str
    run: str | None
    instance: Instant


def jobs_of(store: EntityStore, plan: FlowPlan) -> list[FlowJob]:
    """The jobs in the order of the hops; those on clusters of other colos are left out."""
    feeds = [store.feeds[one.name] for one in plan.feeds if one.name in store.feeds]
    workloads: list[Workload] = []
    for feed in feeds:
        workloads += [*store.imports_of(feed.name), *store.exports_of(feed.name)]
        for cluster, _ in store.feed_clusters(feed):
            workloads += store.replications_to(feed.name, cluster.name)
    return list(_matched(plan.route.hops if plan.route else (), workloads))


def _matched(hops: Sequence[Hop], workloads: Sequence[Workload]) -> Iterator[FlowJob]:
    for hop in hops:
        for one in workloads:
            target = one.datasource if isinstance(one, ExportWorkload) else one.cluster
            if one.kind == hop.kind and one.cluster == hop.cluster and target == hop.target[1]:
                yield FlowJob(hop, one)


def newest_due(jobs: Sequence[FlowJob], now: datetime) -> datetime | None:
    """The newest instance that any of the first jobs may have started; None: there is none yet."""
    found = (one.workload.timeline.at_or_before(one.workload.last_due(now)) for one in jobs)
    return max(filter(None, found), default=None)


def transferred(connection: Connection, jobs: Sequence[FlowJob], nominal: datetime) -> dict[tuple[str, str], Transfer]:
    """What imports and exports have recorded of that instance last, by workload and cluster."""
    wanted = [(one.workload.name, one.workload.cluster, nominal) for one in jobs]
    read, sent = TRANSFERS.c, DELIVERIES.c
    imports = connection.execute(
        select(read.process, read.cluster, read.rows, read.low_watermark, read.high_watermark).where(
            tuple_(read.process, read.cluster, read.nominal).in_(wanted)
        )
    )
    exports = connection.execute(
        select(sent.process, sent.cluster, sent.rows)
        .where(tuple_(sent.process, sent.cluster, sent.nominal).in_(wanted))
        .order_by(sent.event_id)
    )
    found = {(one.process, one.cluster): Transfer(one.rows, one.low_watermark, one.high_watermark) for one in imports}
    return found | {(one.process, one.cluster): Transfer(one.rows) for one in exports}


@dataclass(frozen=True)
class Transfer:
    rows: int | None = None
    low_watermark: str | None = None
    high_watermark: str | None = None


def state_of(job: FlowJob, info: InstanceInfo, moved: Transfer) -> JobState:
    message = str((info.reason or {}).get("text", ""))
    return JobState(
        job.workload.name,
        job.workload.kind,
        _named(job.hop.source),
        _named(job.hop.target),
        info.executor or f"{job.hop.cluster}/{job.hop.step.executor}",
        info.state.value,
        info.attempt,
        moved.rows,
        moved.low_watermark,
        moved.high_watermark,
        info.started,
        info.ended,
        message,
        info.run,
        info.instance,
    )


def summed_up(states: Sequence[JobState]) -> tuple[str, str]:
    """The state of a flow's instance, and how far it has come."""
    found = [one.state for one in states]
    done = sum(state == "SUCCEEDED" for state in found)
    message = f"{done} of {len(found)} jobs are done"
    failed = [one.destination for one in states if one.state in _FAILED]
    if failed:
        return "FAILED", f"{message}; {', '.join(failed)} failed"
    if all(state in OVER for state in found):
        return ("SUCCEEDED" if done == len(found) else "SKIPPED"), message
    if any(state == "RUNNING" for state in found) or done:
        return "RUNNING", message
    return next((state for state in ("SUSPENDED", "READY") if state in found), "WAITING"), message


def _named(place: PlaceKey) -> str:
    return " ".join(place)
