"""Computation of an instance of a process from recorded versions, and comparison of the results."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import SparkSession

from falcon_assets.compute.engines.computing.task import WorkflowResult
from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.compute.spark.sessions import apply_settings, isolated
from falcon_assets.errors import MissingInputsError, StorageError, UnknownInstanceError
from falcon_assets.features.replay.comparison import Comparison, as_in_table, compare
from falcon_assets.features.replay.recorded_instance import RecordedInstance
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.instances.runs.instance_data import InstanceData, Readings
from falcon_assets.instances.runs.instance_result import InstanceResult
from falcon_assets.instances.runs.instance_run import (
    InstanceRunner,
    ReadyInstance,
    read_as_data,
)
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.table_uri import TableUri
from falcon_assets.planning.process_instance import OutputPlan, plan_process_instance
from falcon_assets.storage.files.path_lock import path_lock
from falcon_assets.storage.kinds.kind_of import kind_of


@dataclass(frozen=True)
class ReplayedOutput:
    """The result for one output; ``comparison`` is None where the recorded data is deleted."""

    feed: str
    instance: datetime
    records: int
    comparison: Comparison | None


@dataclass(frozen=True)
class Replay:
    """Computes an instance from recorded versions; ``folder`` is deleted first."""

    runner: InstanceRunner
    nominal: datetime
    recorded: RecordedInstance
    folder: Path

    def prepare(self) -> ReadyInstance:
        """Plans the instance and finds every version that it read.

        Raises:
            MissingInputsError: versions are deleted; names them.
            StorageError: Spark cannot write to this machine, or a store cannot be read.
            FalconError: the definition does not have the instance, or a feed of an output has another one.
        """
        runner = self.runner
        if not runner.executor.shares_folders:
            raise StorageError(
                f"the Spark of cluster {runner.cluster.name!r} shares no folder with this machine, where its results "
                "are kept for the comparison: replay where the execute endpoint is local[N], the server of falcon "
                "spark start, or a standalone master on this machine"
            )
        plan = plan_process_instance(
            runner.process,
            runner.cluster,
            runner.feeds,
            self.nominal,
            user=runner.owner,
            available=lambda feed: self.recorded.read_of(feed.name),
        )
        gone: list[str] = []
        available = {}
        for one in plan.inputs:
            read = self.recorded.inputs.get(one.feed.name, {})
            if one.short and not one.optional:
                gone.append(f"{one.name}: not enough instances of {one.feed.name} were read for {one.short}")
            found = []
            for instance, path in zip(one.instances, one.paths, strict=True):
                if instance not in read:
                    continue
                place = self._place(one.feed, instance, path, read[instance].version)
                if place is None:
                    version = read[instance]
                    lay = f" at {version.kept_at or version.path}" if version.kept_at or version.path else ""
                    gone.append(f"{one.name}: {version.id}, which was {version.status.value.lower()}{lay}")
                else:
                    found.append((instance, place))
            available[one.name] = tuple(found)
        for output in plan.outputs:
            made = self.recorded.outputs.get(output.feed.name)
            if made is not None and made.instance != output.instance:
                other = format_instant(output.instance)
                raise UnknownInstanceError(f"{made.id} would be the instance {other} by these definitions")
        if gone:
            raise MissingInputsError(f"{runner.process.name} at {format_instant(self.nominal)}", [], gone)
        late = () if any(one.late for one in self.recorded.outputs.values()) else None
        return ReadyInstance(plan, available, late)

    def compare(self, ready: ReadyInstance) -> list[ReplayedOutput]:
        """Computes the instance into :attr:`folder` and compares it; published data stays unchanged.

        Raises:
            WorkflowError: the workflow failed, or its output cannot be read.
            StorageError: a store cannot be read, or another process replays the instance.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with path_lock(self.folder.with_name(f"{self.folder.name}.lock"), 0) as is_ours:
            if not is_ours:
                when = f"{self.runner.process.name} {format_instant(self.nominal)}"
                raise StorageError(f"{when} is being replayed by another process: let it end")
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
            data = self.runner.data(ready)
            with data.readable(ready.available) as read:
                urls = {output.name: f"file://{self.folder / output.name}" for output in ready.plan.outputs}
                return self._computed(ready, data, read, urls)[0]

    def publish(self, ready: ReadyInstance) -> tuple[list[ReplayedOutput], InstanceResult]:
        """Computes, compares and publishes the instance, as an ordinary publication; raises as :meth:`compare`."""
        started, data = time.monotonic(), self.runner.data(ready)
        with data.within_reach(ready.available) as (read, publications):
            urls = {name: publication.staging_url(name) for name, publication in publications.items()}
            outputs, result = self._computed(ready, data, read, urls)
            used, undeclared = self.runner.used(ready.plan, read, urls, result)
            published = self.runner.publish(ready.plan, publications, result.records)
        seconds = time.monotonic() - started
        made = (published, result.application_id, seconds, used)
        return outputs, InstanceResult(self.nominal, self._consumed(ready), *made, undeclared=undeclared)

    def _place(self, feed: Feed, instance: datetime, path: str, version: str) -> str | None:
        """Returns the place of a version for its store; None: it is deleted."""
        return kind_of(self.runner.store_of(feed)).path_of_version(feed, instance, path, version)

    def _computed(
        self, ready: ReadyInstance, data: InstanceData, read: Readings, urls: Mapping[str, str]
    ) -> tuple[list[ReplayedOutput], WorkflowResult]:
        result = self.runner.compute(ready, data.settings, read, urls)
        found = []
        with isolated(self.runner.executor.session()) as spark:
            apply_settings(spark, data.settings, self.runner.process.name)
            for one in ready.plan.outputs:
                compared = self._compared(spark, data, one, urls[one.name])
                found.append(ReplayedOutput(one.feed.name, one.instance, result.records[one.name], compared))
        return found, result

    def _compared(self, spark: SparkSession, data: InstanceData, output: OutputPlan, url: str) -> Comparison | None:
        feed = output.feed
        recorded = self.recorded.outputs.get(feed.name)
        if recorded is None:
            return None
        place = self._place(feed, output.instance, output.path, recorded.version)
        if place is None:
            return None
        with data.reading(feed, place) as was:
            if was.version.version != recorded.version:  # replaced just now
                return None
            before = read_input(spark, read_as_data(output.name, feed, [was]))
            if not feed.table_on(self.runner.cluster.name):
                return compare(before, read_input(spark, InputData(output.name, feed, (url,))))
            uri = TableUri.parse(output.path)
            files = feed.model_copy(update={"partitions": uri.open_keys})
            after = as_in_table(read_input(spark, InputData(output.name, files, (url,))), before, uri.open_keys)
            return compare(before.drop(*uri.fixed), after.drop(*uri.fixed))

    def _consumed(self, ready: ReadyInstance) -> dict[str, tuple[Consumption, ...]]:
        return {
            one.name: tuple(self._read(one.feed, instance) for instance in one.instances) for one in ready.plan.inputs
        }

    def _read(self, feed: Feed, instance: datetime) -> Consumption:
        version = self.recorded.inputs.get(feed.name, {}).get(instance)
        if version is None:
            return Consumption(feed.name, instance, None)
        return Consumption(feed.name, instance, version.version, path=version.path)
