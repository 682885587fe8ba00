"""What a run does for one instance: a process computes, a replication copies; everything around it is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

import dagster as dg
from pyspark.sql import SparkSession

from falcon_assets.orchestration.runs.instance_run import Evicted, InstanceResult, InstanceRunner, ReadyInstance
from falcon_assets.orchestration.runs.materializations import materializations
from falcon_assets.orchestration.runs.run_definitions import RunDefinitions
from falcon_assets.planning.instances.instance_record import LateChange

Session: TypeAlias = Callable[[], SparkSession]
"""Asked when Spark is needed."""
Event: TypeAlias = dg.AssetMaterialization | dg.AssetObservation


class Done(Protocol):
    """An instance that succeeded."""

    @property
    def nominal(self) -> datetime:
        """The instance."""

    def events(self, partition: str, at: datetime, definition: int | None) -> Iterator[Event]:
        """What Dagster's history says of it; the last event says that it succeeded, at that time.

        Args:
            partition: Of the assets.
            at: The time on the falcon clock.
            definition: The version of the definition that it ran with.
        """


class Prepared(Protocol):
    """An instance that can run."""

    @property
    def nominal(self) -> datetime:
        """The instance."""

    def run(self, session: Session) -> Done:
        """Runs it to its end; called from any thread.

        Raises:
            FalconError: it failed.
        """


class InstanceWork(Protocol):
    """How the instances of a workload are run."""

    def prepare(self, nominal: datetime, late: tuple[LateChange, ...] | None, evicted: Evicted) -> Prepared:
        """Checks whether the instance can run; touches no Spark.

        Args:
            nominal: The instance.
            late: The changes for which it is run again; None: this is no late rerun.
            evicted: Is asked about what is missing.

        Raises:
            FalconError: it cannot, and why.
        """

    def definition(self, nominal: datetime) -> int | None:
        """The version of the definition that the instance runs with; None: none is recorded."""


@dataclass(frozen=True)
class ProcessWork:
    """Runs workflows."""

    definitions: RunDefinitions

    def prepare(self, nominal: datetime, late: tuple[LateChange, ...] | None, evicted: Evicted) -> Prepared:
        """See :class:`InstanceWork`."""
        runner = self.definitions.runner(nominal)
        return _Computation(runner, runner.prepare(nominal, late, evicted), self.definitions)

    def definition(self, nominal: datetime) -> int | None:
        """See :class:`InstanceWork`."""
        return self.definitions.version(nominal)


@dataclass(frozen=True)
class _Computation:
    runner: InstanceRunner
    ready: ReadyInstance
    definitions: RunDefinitions

    @property
    def nominal(self) -> datetime:
        return self.ready.plan.nominal

    def run(self, session: Session) -> Done:
        with self.definitions.hinting(self.nominal):
            return _Computed(self.runner, self.runner.run(self.ready, session))


@dataclass(frozen=True)
class _Computed:
    runner: InstanceRunner
    result: InstanceResult

    @property
    def nominal(self) -> datetime:
        return self.result.nominal

    def events(self, partition: str, at: datetime, definition: int | None) -> Iterator[Event]:
        process, cluster = self.runner.process.name, self.runner.cluster.name
        return materializations(self.result, process, cluster, partition, at, definition)
