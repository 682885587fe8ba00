"""The body of a process's op: many instances in one run, each on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import dagster as dg
from pyspark.sql import SparkSession

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import FalconError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.orchestration.instance_run import InstanceResult, InstanceRunner, ReadyInstance
from falcon_assets.orchestration.materialization import materializations
from falcon_assets.orchestration.partitions import instant_of_key, key_of
from falcon_assets.planning.process_partitions import ProcessPartitions
from falcon_assets.settings import Settings
from falcon_assets.spark.engines.programs import stop_programs
from falcon_assets.storage.cluster_store import ClusterStore


@dataclass(frozen=True)
class ProcessExecution:
    """Runs the partitions of a run of one process on one cluster."""

    store: EntityStore
    process: Process
    cluster: Cluster
    partitions: ProcessPartitions
    settings: Settings

    @cached_property
    def _files(self) -> ClusterStore:
        return ClusterStore(self.cluster, self.settings.home, self.settings.environ)

    @cached_property
    def _runner(self) -> InstanceRunner:
        return InstanceRunner(
            self.process,
            self.cluster,
            self.store.feeds,
            self._files,
            self.store.root,
            self.process.acl.owner if self.process.acl else self.settings.user,
        )

    def run(self, context: dg.AssetExecutionContext, session: Callable[[], SparkSession]) -> None:
        """Runs every instance of the run's partitions, ``parallel`` at a time, and records each as it is published.

        Raises:
            dagster.Failure: one or more instances failed; names them and why. The others are done.
        """
        nominals = self._nominals(context.partition_keys)
        failures: dict[datetime, str] = {}
        ready = list(self._prepare(nominals, failures))
        for nominal, outcome in self._outcomes(ready, session):
            if isinstance(outcome, InstanceResult):
                self._record(context, outcome)
                continue
            failures[nominal] = str(outcome) or type(outcome).__name__
            if not isinstance(outcome, FalconError):
                # Not foreseen: whoever mends it needs the traceback, and the other instances need not suffer.
                context.log.error(f"{self.process.name} {format_instant(nominal)}", exc_info=outcome)
        for nominal, reason in sorted(failures.items()):
            context.log.error(f"{self.process.name} {format_instant(nominal)}: {reason}")
        if failures:
            raise dg.Failure(description=_summary(self.process.name, failures, len(nominals)))

    def _nominals(self, keys: Sequence[str]) -> list[datetime]:
        """The nominal times behind the partition keys, in the order in which they run."""
        instants = [instant for key in keys if (instant := instant_of_key(key)) is not None]
        return sorted(map(self.partitions.nominal_of, instants), reverse=self.process.order != "FIFO")

    def _prepare(self, nominals: Sequence[datetime], failures: dict[datetime, str]) -> Iterator[ReadyInstance]:
        """The instances that can run; why the others cannot goes to ``failures``. No Spark is started for it."""
        for nominal in nominals:
            try:
                yield self._runner.prepare(nominal)
            except FalconError as error:
                failures[nominal] = str(error)

    def _outcomes(
        self, ready: Sequence[ReadyInstance], session: Callable[[], SparkSession]
    ) -> Iterator[tuple[datetime, InstanceResult | Exception]]:
        """Results and failures as they come; nothing is started any more once the run is interrupted."""
        with ThreadPoolExecutor(max_workers=self.process.parallel, thread_name_prefix=self.process.name) as pool:
            futures: dict[Future[InstanceResult], datetime] = {
                pool.submit(self._runner.run, one, session): one.plan.nominal for one in ready
            }
            try:
                for future in as_completed(futures):
                    try:
                        yield futures[future], future.result()
                    except Exception as error:
                        yield futures[future], error
            except BaseException:
                # The run is interrupted: what waits is dropped, and programs do not outlive it.
                pool.shutdown(wait=False, cancel_futures=True)
                stop_programs()
                raise

    def _record(self, context: dg.AssetExecutionContext, result: InstanceResult) -> None:
        partition = key_of(self.partitions.timeline, self.partitions.partition_of(result.nominal))
        for event in materializations(result, self._files, partition):
            context.log_event(event)


def _summary(process: str, failures: dict[datetime, str], total: int) -> str:
    lines = [f"{format_instant(nominal)}: {reason}" for nominal, reason in sorted(failures.items())]
    return "\n".join([f"{len(failures)} of {total} instance(s) of {process} failed:", *lines])
