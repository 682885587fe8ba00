"""The job and the sensor of each cluster that check what has landed or was published there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status, statuses
from falcon_assets.errors import FalconError, count_of
from falcon_assets.features.quality.checks import QualityChecks
from falcon_assets.features.quality.rules import SEEN_WITHIN
from falcon_assets.features.quality.store import unchecked
from falcon_assets.history.database import locked
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.instances.runs.dead_runs import UNFINISHED
from falcon_assets.instances.runs.run_locks import all_taken
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.dagster_names import op_name
from falcon_assets.settings import Settings

_INTERVAL_SECONDS = 15
_AT_ONCE = 200
_STARTS_WITHIN = timedelta(minutes=3)
"""A run without its lock is dead after that, or waits in the queue."""
_LOCK = "quality of"


@dataclass(frozen=True)
class CheckingPass:
    """Checks what is unchecked on one cluster, the newest first, until nothing is left or a limit is reached."""

    store: EntityStore
    cluster: Cluster
    settings: Settings

    def pending(self, ledger: Ledger, limit: int) -> list[tuple[str, datetime, str]]:
        """Feeds, instances and versions that are due, of feeds that are scheduled."""
        now = self.settings.now()
        feeds = QualityChecks(self.store, self.settings).feeds_on(self.cluster.name)
        with ledger.engine.begin() as connection:
            status = statuses(connection, feeds, now)
            running = [one.name for one in feeds if status["feed", one.name].status is Status.RUNNING]
            return unchecked(connection, self.cluster.name, running, now - SEEN_WITHIN, limit)

    def run(self, ledger: Ledger) -> tuple[int, list[str]]:
        """Returns the number of checked versions, and problems; without effect while another process does the same."""
        from falcon_assets.features.quality.checking import (  # noqa: PLC0415 - it needs Spark
            InstanceChecker,
            OtherVersionError,
        )

        checker = InstanceChecker(self.store, self.cluster, self.settings, ledger)
        done, left, problems = 0, 0, list[str]()
        with all_taken(ledger.engine, [self.lock]) as is_ours:
            while is_ours and done + left + len(problems) < _AT_ONCE:
                ledger.catch_up()
                found = self.pending(ledger, 1)
                if not found:
                    break
                ((name, instance, version),) = found
                try:
                    row = checker.check(self.store.feed(name), (self.cluster.name, name, instance), version)
                    if row is None:  # a person checks it just now
                        break
                    done += 1
                except OtherVersionError:  # the present one has its turn when it is in the ledger
                    left += 1
                except FalconError as error:
                    problems.append(f"{name} {format_instant(instance)}: {error}")
        return done, problems

    @property
    def lock(self) -> str:
        return f"{_LOCK} {self.cluster.name}"


def checking_definitions(
    store: EntityStore, settings: Settings
) -> tuple[list[dg.JobDefinition], list[dg.SensorDefinition]]:
    jobs, sensors = [], []
    for cluster in store.clusters.values():
        feeds = QualityChecks(store, settings).feeds_on(cluster.name)
        if feeds:
            checking = CheckingPass(store, cluster, settings)
            jobs.append(_job(checking, feeds))
            sensors.append(_sensor(checking, jobs[-1]))
    return jobs, sensors


def _job(checking: CheckingPass, feeds: Sequence[Feed]) -> dg.JobDefinition:
    cluster = checking.cluster.name
    name = op_name(cluster, "quality_checks_of_all_feeds_on_the_cluster")  # no process has a name of that length

    @dg.op(name=f"{name}_check", description=f"Checks new versions on {cluster}", out=dg.Out(dg.Nothing))
    def check(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        done, problems = checking.run(open_ledger(checking.settings, context.instance))
        context.log.info(f"{count_of(done, 'version was', 'versions were')} checked")
        if problems:
            raise dg.Failure(
                "\n".join([f"{len(problems)} could not be checked, and are tried again:", *problems]),
                allow_retries=False,
            )

    @dg.job(
        name=name,
        description=f"Checks of what has landed or was published on {cluster}: {', '.join(one.name for one in feeds)}",
        tags=names.tags({"falcon/cluster": cluster}),
        executor_def=dg.in_process_executor,
    )
    def job() -> None:
        check()

    return job


def _sensor(checking: CheckingPass, job: dg.JobDefinition) -> dg.SensorDefinition:
    cluster = checking.cluster.name

    @dg.sensor(
        name=op_name(cluster, "quality"),
        description=f"Starts checks of versions on {cluster} that are new, or could not be checked",
        minimum_interval_seconds=_INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        job=job,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        ledger = open_ledger(checking.settings, context.instance)
        ledger.catch_up()
        if not checking.pending(ledger, 1):
            return dg.SkipReason("nothing is unchecked, or waits for its next attempt")
        if _is_under_way(ledger, checking, job):
            return dg.SkipReason("a run is checking")
        return dg.RunRequest(tags=run_tags.BY_ITSELF)

    return evaluate


def _is_under_way(ledger: Ledger, checking: CheckingPass, job: dg.JobDefinition) -> bool:
    with ledger.engine.connect() as connection:
        if locked(connection, [checking.lock]):
            return True
    unfinished = ledger.instance.get_run_records(dg.RunsFilter(job_name=job.name, statuses=UNFINISHED), limit=1)
    return any(datetime.now(UTC) - one.create_timestamp < _STARTS_WITHIN for one in unfinished)


def foreground_passes(store: EntityStore, settings: Settings, clusters: Sequence[Cluster]) -> Iterator[CheckingPass]:
    for cluster in clusters:
        if QualityChecks(store, settings).feeds_on(cluster.name):
            yield CheckingPass(store, cluster, settings)
