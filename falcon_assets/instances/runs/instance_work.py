"""The work of a run for one instance: a process computes, a replication copies; the rest is shared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Protocol, TypeAlias

import dagster as dg

from falcon_assets.base.texts import keep_secret
from falcon_assets.compute.executor import Executor
from falcon_assets.errors import StorageError
from falcon_assets.history.mapping.asset_keys import workload_keys
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.rules.replaced_outputs import replaced_by
from falcon_assets.instances.runs.instance_result import InstanceResult
from falcon_assets.instances.runs.instance_run import InstanceRunner, ReadyInstance
from falcon_assets.instances.runs.materializations import materializations
from falcon_assets.instances.runs.outside_runs import earlier_snapshots
from falcon_assets.instances.runs.planned_inputs import Evicted
from falcon_assets.instances.runs.run_definitions import RunDefinitions
from falcon_assets.instances.store import reruns
from falcon_assets.instances.store.former_instances import FormerInstances
from falcon_assets.instances.store.newest_instances import newest_written
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import LateChange, RerunRequest
from falcon_assets.planning.process_instance import looked_up, said_properties, with_properties
from falcon_assets.planning.workloads import Workload

Event: TypeAlias = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation


class Done(Protocol):
    @property
    def nominal(self) -> datetime: ...

    def events(self, partition: str, at: datetime, definition: int | None) -> Iterator[Event]:
        """Events for Dagster's history, the last for the success; ``at`` is on the falcon clock."""


class Prepared(Protocol):
    @property
    def nominal(self) -> datetime: ...

    def run(self) -> Done:
        """Called from any thread; raises FalconError where it failed."""


class InstanceWork(Protocol):
    @property
    def executor(self) -> Executor: ...

    def prepare(self, nominal: datetime, late: tuple[LateChange, ...] | None, evicted: Evicted) -> Prepared:
        """Checks whether the instance can run, without Spark; raises FalconError with the reason.

        ``late`` None: this is no late rerun. ``evicted`` is called for missing inputs.
        """

    def definition(self, nominal: datetime) -> int | None:
        """None: no version is recorded."""

    def is_there(self, nominal: datetime, feed: str, instance: datetime) -> bool:
        """Whether the instance is there, where ``nominal`` reads it; raises FalconError where that is unknown."""


@dataclass(frozen=True)
class ProcessWork:
    """``environ`` has the variables that properties may name."""

    definitions: RunDefinitions
    workload: Workload
    ledger: Ledger
    environ: Mapping[str, str] = field(repr=False)

    @property
    def executor(self) -> Executor:
        return self.definitions.loaded.executor

    def prepare(self, nominal: datetime, late: tuple[LateChange, ...] | None, evicted: Evicted) -> Prepared:
        """Also raises StorageError where it would replace a later instance's snapshot, or an earlier definition's."""
        if replaced := replaced_by(self.workload, nominal, self._newest):
            instance = f"{self.workload.name} on {self.workload.cluster} at {format_instant(nominal)}"
            raise StorageError(f"{instance}: {replaced}")
        runner = self._told(self.definitions.runner(nominal), nominal)
        ready = replace(runner.prepare(nominal, late, evicted), definition=self.definition(nominal))
        for output in ready.plan.outputs:
            self._former.require_apart(runner.store_of(output.feed), output.feed, output.instance, output.path)
        return _Computation(runner, ready, self)

    def definition(self, nominal: datetime) -> int | None:
        return self.definitions.version(nominal)

    def _told(self, runner: InstanceRunner, nominal: datetime) -> InstanceRunner:
        """With the properties of the request for this instance."""
        asked = self._asked[nominal].properties if nominal in self._asked else ()
        if not asked:
            return runner
        name = f"{runner.process.name} {format_instant(nominal)}"
        self.definitions.say(f"{name} runs with {said_properties(asked)}, as {self._asked[nominal].by} asked")
        found = looked_up(asked, self.environ)
        keep_secret(value for (_, value), (_, said) in zip(found, asked, strict=True) if value != said)
        return replace(runner, process=with_properties(runner.process, found))

    @cached_property
    def _asked(self) -> Mapping[datetime, RerunRequest]:
        """Cached at the first instance of the run."""
        with self.ledger.engine.connect() as connection:
            return reruns.with_properties(connection, self.workload.name, self.workload.cluster)

    @cached_property
    def _former(self) -> FormerInstances:
        return FormerInstances(self.ledger)

    def is_there(self, nominal: datetime, feed: str, instance: datetime) -> bool:
        return self.definitions.runner(nominal).is_there(feed, instance)

    @cached_property
    def _newest(self) -> Mapping[str, datetime]:
        """Cached: no other run writes while this one does."""
        if not self.workload.replaces_earlier:
            return {}
        self.ledger.catch_up()
        with self.ledger.engine.connect() as connection:
            return newest_written(connection, [self.workload])


@dataclass(frozen=True)
class _Computation:
    runner: InstanceRunner
    ready: ReadyInstance
    work: ProcessWork

    @property
    def nominal(self) -> datetime:
        return self.ready.plan.nominal

    def run(self) -> Done:
        with self.work.definitions.hinting(self.nominal):
            return _Computed(self.runner, self.runner.run(self.ready), self.work)


@dataclass(frozen=True)
class _Computed:
    runner: InstanceRunner
    result: InstanceResult
    work: ProcessWork

    @property
    def nominal(self) -> datetime:
        return self.result.nominal

    def events(self, partition: str, at: datetime, definition: int | None) -> Iterator[Event]:
        workload, name, cluster = self.work.workload, self.work.workload.name, self.work.workload.cluster
        earlier = earlier_snapshots(self.work.ledger, workload, self.nominal)
        effect = workload_keys(workload)[0]
        return materializations(self.result, name, cluster, partition, at, definition, earlier, effect)
