"""What a run does for one instance: a process computes, a replication copies; everything around it is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Protocol, TypeAlias

import dagster as dg
from pyspark.sql import SparkSession

from falcon_assets.base.texts import keep_secret
from falcon_assets.errors import FalconError, MissingInputsError, StorageError
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.rules.replaced_outputs import replaced_by
from falcon_assets.instances.runs.instance_run import InstanceResult, InstanceRunner, ReadyInstance
from falcon_assets.instances.runs.materializations import materializations
from falcon_assets.instances.runs.planned_inputs import Evicted
from falcon_assets.instances.runs.run_definitions import RunDefinitions
from falcon_assets.instances.store import reruns
from falcon_assets.instances.store.former_instances import require_apart
from falcon_assets.instances.store.newest_instances import newest_written, unrecorded_before
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.data_usage import FeedInstance
from falcon_assets.planning.input_windows import output_instance
from falcon_assets.planning.instance_record import LateChange, RerunRequest
from falcon_assets.planning.process_instance import looked_up, said_properties, with_properties
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload

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

    def is_there(self, nominal: datetime, feed: str, instance: datetime) -> bool:
        """Whether the instance of a feed is there where ``nominal`` reads it.

        Raises:
            FalconError: nobody can say.
        """


@dataclass(frozen=True)
class ProcessWork:
    """Runs workflows; ``environ`` has the variables that properties may name."""

    definitions: RunDefinitions
    workload: Workload
    ledger: Ledger
    environ: Mapping[str, str] = field(repr=False)

    def prepare(self, nominal: datetime, late: tuple[LateChange, ...] | None, evicted: Evicted) -> Prepared:
        """See :class:`InstanceWork`; also raises a StorageError where it would replace what is not its own.

        That is what later instances wrote into a snapshot, and what an earlier definition made.
        """
        if replaced := replaced_by(self.workload, nominal, self._newest):
            instance = f"{self.workload.name} on {self.workload.cluster} at {format_instant(nominal)}"
            raise StorageError(f"{instance}: {replaced}")
        runner = self._told(self.definitions.runner(nominal), nominal)
        ready = runner.prepare(nominal, late, evicted)
        for output in ready.plan.outputs:
            require_apart(self.ledger, runner.store_of(output.feed), output.feed, output.instance, output.path)
        return _Computation(runner, ready, self)

    def definition(self, nominal: datetime) -> int | None:
        """See :class:`InstanceWork`."""
        return self.definitions.version(nominal)

    def _told(self, runner: InstanceRunner, nominal: datetime) -> InstanceRunner:
        """With the properties that somebody asked for, of this instance and this time."""
        asked = self._asked[nominal].properties if nominal in self._asked else ()
        if not asked:
            return runner
        name = f"{runner.process.name} {format_instant(nominal)}"
        self.definitions.say(f"{name} runs with {said_properties(asked)}, as {self._asked[nominal].by} asked")
        told = looked_up(asked, self.environ)
        keep_secret(value for (_, value), (_, said) in zip(told, asked, strict=True) if value != said)
        return replace(runner, process=with_properties(runner.process, told))

    @cached_property
    def _asked(self) -> Mapping[datetime, RerunRequest]:
        """The requests with properties, as this run found them."""
        with self.ledger.engine.connect() as connection:
            return reruns.with_properties(connection, self.workload.name, self.workload.cluster)

    def is_there(self, nominal: datetime, feed: str, instance: datetime) -> bool:
        """See :class:`InstanceWork`."""
        return self.definitions.runner(nominal).is_there(feed, instance)

    def earlier(self, nominal: datetime) -> Mapping[FeedInstance, str | None]:
        """The instances that snapshots have as well with what an instance wrote: refreshed since, and never before.

        With their partitions of the asset; None: they have none.
        """
        if not self.workload.snapshots:
            return {}
        partitions, cluster = self.workload.partitions.timeline, self.workload.cluster
        found: dict[FeedInstance, str | None] = {}
        self.ledger.catch_up()
        with self.ledger.engine.connect() as connection:
            for output in self.workload.snapshots:
                feed = self.workload.feeds[output.feed]
                own = output_instance(output, feed_timeline(feed, cluster), nominal, self.workload.timezone)
                for one in unrecorded_before(connection, cluster, feed, own) if own else ():
                    found[feed.name, one] = key_of(partitions, one) if partitions.contains(one) else None
        return found

    @cached_property
    def _newest(self) -> Mapping[str, datetime]:
        """No other run writes while this one does."""
        if not self.workload.snapshots:
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

    def run(self, session: Session) -> Done:
        with self.work.definitions.hinting(self.nominal):
            return _Computed(self.runner, self.runner.run(self.ready, session), self.work)


@dataclass(frozen=True)
class _Computed:
    runner: InstanceRunner
    result: InstanceResult
    work: ProcessWork

    @property
    def nominal(self) -> datetime:
        return self.result.nominal

    def events(self, partition: str, at: datetime, definition: int | None) -> Iterator[Event]:
        process, cluster = self.runner.process.name, self.runner.cluster.name
        earlier = self.work.earlier(self.nominal)
        return materializations(self.result, process, cluster, partition, at, definition, earlier)


Asked: TypeAlias = "Mapping[datetime, tuple[LateChange, ...] | None]"
"""Instances in the order in which they run, with the changes for which they run again; None: not for late data."""
Preparation: TypeAlias = Callable[[], Prepared]
"""Asked when the turn of an instance has come; raises what :meth:`InstanceWork.prepare` does."""


def ahead(
    work: InstanceWork, asked: Asked, evicted: Evicted
) -> tuple[dict[datetime, Preparation], dict[datetime, FalconError]]:
    """The instances that can run, and why the others cannot. No Spark is started for it."""
    ready: dict[datetime, Preparation] = {}
    failures: dict[datetime, FalconError] = {}
    for nominal, late in asked.items():
        try:
            ready[nominal] = partial(_same, work.prepare(nominal, late, evicted))
        except FalconError as error:
            failures[nominal] = error
    return ready, failures


def in_turn(work: InstanceWork, asked: Asked, evicted: Evicted) -> dict[datetime, Preparation]:
    """All of them: whether one can run is known when those before it have; they are to run one after the other."""
    turns = _Turns(work)
    return {nominal: partial(turns.prepare, nominal, late, evicted) for nominal, late in asked.items()}


def _same(prepared: Prepared) -> Prepared:
    return prepared


class NotItsTurnError(FalconError):
    """An instance lacks inputs, and an earlier instance failed in the same run: it was not tried."""


@dataclass
class _Turns:
    """The work of a workload that reads its own outputs, and the first instance that failed."""

    work: InstanceWork
    failed: datetime | None = field(default=None, init=False)

    def prepare(self, nominal: datetime, late: tuple[LateChange, ...] | None, evicted: Evicted) -> Prepared:
        try:
            return _Watched(self.work.prepare(nominal, late, evicted), self)
        except FalconError as error:
            if isinstance(error, MissingInputsError) and self.failed is not None:
                raise NotItsTurnError(f"{format_instant(self.failed)} failed, and {error}") from None
            self.failed = self.failed or nominal
            raise


@dataclass(frozen=True)
class _Watched:
    ready: Prepared
    turns: _Turns

    @property
    def nominal(self) -> datetime:
        return self.ready.nominal

    def run(self, session: Session) -> Done:
        try:
            return self.ready.run(session)
        except BaseException:
            self.turns.failed = self.turns.failed or self.nominal
            raise
