"""Executors with what is known of them: their health, and what runs and Spark use of their cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.compute.spark.endpoints.confs import without_secrets
from falcon_assets.instances.coordination.capabilities import capabilities_of
from falcon_assets.instances.coordination.executors import Executors
from falcon_assets.instances.store.executors import known_executors
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.executor import Capability
from falcon_assets.operations.operation import Result
from falcon_assets.planning.executor_health import Health


@dataclass(frozen=True)
class ListedExecutor(Result):
    """An executor; times are real.

    Attributes:
        health: UNKNOWN: nobody asked it yet.
        since: When it began to answer, or not to; None: nobody asked it yet.
        problem: Why it does not answer; empty: it does.
        jobs: How many instances run on it, or are about to.
        cores: How many cores their runs have.
        spark_cores: How many cores its Spark has; None: not known, as ``free_cores`` and ``waiting``.
        waiting: How many applications wait for cores there.
        probed: When it was asked last.
    """

    cluster: str
    executor: str
    endpoint: str
    location: str
    health: Health
    since: datetime | None
    problem: str
    jobs: int
    most_jobs: int | None
    cores: int
    most_cores: int | None
    spark_cores: int | None
    free_cores: int | None
    waiting: int | None
    queue: str | None
    capabilities: tuple[Capability, ...]
    probed: datetime | None


def listed_executors(connection: Connection, store: EntityStore, cluster: Cluster) -> Iterator[ListedExecutor]:
    now = datetime.now(UTC)
    known = known_executors(connection, cluster)
    used = Executors(connection, store, cluster.name, now, of_default=True)
    for one in cluster.all_executors:
        record = known.get(one.name)
        load = record.load(now) if record else None
        yield ListedExecutor(
            cluster.name,
            one.name,
            without_secrets(one.endpoint),
            one.location or cluster.colo,
            record.health if record else Health.UNKNOWN,
            record.since if record else None,
            record.problem if record else "",
            used.jobs(one.name),
            one.quota.jobs,
            used.own_cores(one.name),
            one.quota.cores,
            load.cores if load else None,
            load.free if load else None,
            load.waiting if load else None,
            one.queue,
            tuple(capabilities_of(one)),
            record.probed_at if record else None,
        )


def metrics_of(connection: Connection, store: EntityStore) -> Mapping[str, Mapping[tuple[str, ...], float]]:
    """Values of the metrics of executors that clusters declare."""
    up, jobs, cores, free, waiting = (dict[tuple[str, ...], float]() for _ in range(5))
    for cluster in store.clusters.values():
        for one in listed_executors(connection, store, cluster) if cluster.executors else ():
            key = (one.cluster, one.executor)
            jobs[key], cores[key] = one.jobs, one.cores
            if one.probed is not None:
                up[key] = not one.problem
            if one.free_cores is not None and one.waiting is not None:
                free[key], waiting[key] = one.free_cores, one.waiting
    return {
        "falcon_executor_up": up,
        "falcon_executor_jobs": jobs,
        "falcon_executor_cores": cores,
        "falcon_executor_free_cores": free,
        "falcon_executor_waiting_applications": waiting,
    }
