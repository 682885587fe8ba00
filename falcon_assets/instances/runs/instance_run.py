"""A process instance, from its plan to its published outputs; independent of Dagster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.catalog.store import EntityStore
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.compute.executor import Executor, InProcessExecutor
from falcon_assets.compute.spark.data.dataset import InputData, Members, OutputData
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.hooks import InspectedOutput, KeptAside, OutputInspection, StagedOutput, merged
from falcon_assets.instances.runs.data_usage import FeedPlaces, require_declared
from falcon_assets.instances.runs.instance_data import InstanceData, Publications, Readings
from falcon_assets.instances.runs.instance_result import InstanceResult, PublishedOutput
from falcon_assets.instances.runs.kept_versions import kept_versions
from falcon_assets.instances.runs.planned_inputs import Available, Evicted, PlannedInputs, nothing_evicted
from falcon_assets.instances.runs.together import compute_with_others
from falcon_assets.instances.store.known_instances import Recorded, all_recorded
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.model.spark_settings import spark_settings
from falcon_assets.model.table_uri import TableUri
from falcon_assets.model.workflow import Workflow
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.data_usage import DeclaredData, DeclaredInput, Usage, usage
from falcon_assets.planning.instance_record import LateChange
from falcon_assets.planning.interpolate import Watermark
from falcon_assets.planning.late_inputs import late_workflow
from falcon_assets.planning.process_instance import InputPlan, OutputPlan, ProcessInstance, plan_process_instance
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.kinds.reading import ReadableInstance


def _real_clock(feed: Feed) -> Clock | None:
    return Clock()


@dataclass(frozen=True)
class ReadyInstance:
    """Its required inputs are there; ``late`` as in :meth:`InstanceRunner.prepare`; ``definition`` None: unknown."""

    plan: ProcessInstance
    available: Mapping[str, Available]
    late: tuple[LateChange, ...] | None = None
    definition: int | None = None


@dataclass(frozen=True)
class InstanceRunner:
    """Runs instances of one process on the cluster of ``executor``; safe from several threads.

    ``user`` is for processes without an owner. ``clock`` is
    :meth:`falcon_assets.catalog.store.EntityStore.landing_clock`. ``others`` are stores on other clusters, whose data
    workflows may read undeclared. ``recorded`` asks the ledger for feeds whose instances are taken by their record;
    so does ``watermark``, None: no ledger is asked.
    """

    process: Process
    executor: Executor
    feeds: Mapping[str, Feed]
    store: ClusterStore
    store_of: StoresOf
    entity_root: Path
    user: str
    run_id: str
    clock: Callable[[Feed], Clock | None] = _real_clock
    others: Sequence[StoresOf] = ()
    recorded: Recorded = all_recorded
    watermark: Watermark | None = None
    inspections: Sequence[OutputInspection] = ()

    @classmethod
    def of(
        cls, process: Process, cluster: Cluster, entities: EntityStore, settings: Settings, run_id: str = ""
    ) -> InstanceRunner:
        """With present definitions and stores; raises StorageError where the cluster's store is unusable."""
        where = (settings.home, settings.environ, roots_of(settings))
        store = ClusterStore(cluster, settings.home, settings.environ, roots=roots_of(settings))
        return cls(
            process,
            SparkExecutor(cluster, lambda: store.working, settings.home),
            entities.feeds,
            store,
            StoresOf(cluster, *where),
            entities.root,
            settings.user,
            run_id,
            partial(entities.landing_clock, cluster_name=cluster.name, clock=settings.clock),
            [StoresOf(one, *where) for one in entities.everywhere.values() if one.name != cluster.name],
        )

    @property
    def cluster(self) -> Cluster:
        return self.executor.cluster

    @property
    def owner(self) -> str:
        """The value of ``user()``."""
        return self.process.acl.owner if self.process.acl else self.user

    def prepare(
        self, nominal: datetime, late: tuple[LateChange, ...] | None = None, evicted: Evicted = nothing_evicted
    ) -> ReadyInstance:
        """Plans the instance and checks its inputs, without Spark; ``late`` None: this is no late rerun.

        Raises UnknownInstanceError where ``nominal`` is no instance, MissingInputsError where required inputs are
        missing.
        """
        plan = plan_process_instance(
            self.process,
            self.cluster,
            self.feeds,
            nominal,
            user=self.owner,
            available=self._inputs.instances,
            watermark=self.watermark,
        )
        available = self._inputs.require(plan, self._subject(nominal), evicted)
        return ReadyInstance(plan, available, late)

    def is_there(self, feed: str, instance: datetime) -> bool:
        return self._inputs.is_there(self.feeds[feed], instance)

    def run(self, ready: ReadyInstance) -> InstanceResult:
        """Reads, computes and publishes.

        Raises:
            CancelledError: it was cancelled before anything was published.
            WorkflowError: the workflow failed, or violated ``strict_lineage``.
            StorageError: the outputs cannot be published, or a snapshot feed was refreshed while it was read.
        """
        started = time.monotonic()
        plan = ready.plan
        data = self.data(ready)
        snapshots = self._inputs.snapshots(plan)
        with data.within_reach(ready.available) as (read, publications):
            inputs = {
                one.name: tuple(self._inputs.consumed(one, ready.available[one.name], read[one.name]))
                for one in plan.inputs
            }
            urls = {name: publication.staging_url(name) for name, publication in publications.items()}
            unchanged = partial(self._inputs.require_unchanged, plan, self._subject(plan.nominal), snapshots)
            result = self.compute(ready, data.settings, read, urls, unchanged)
            used, undeclared = self.used(plan, read, urls, result)
            if self.process.strict_lineage:
                require_declared(used, self.process.name, late_workflow(self.process, ready.late).program)
            unchanged()
            late, seconds = _read(ready.late or (), inputs), time.monotonic() - started
            done = (seconds, used, late, undeclared, result.facts)
            made = InstanceResult(plan.nominal, inputs, (), result.application_id, *done)
            inspected = self._inspected(ready, publications, made, result.records)
            outputs = self.publish(plan, publications, result.records, inspected)
        return replace(made, outputs=outputs, seconds=time.monotonic() - started)

    def _inspected(
        self, ready: ReadyInstance, publications: Publications, made: InstanceResult, records: Mapping[str, int]
    ) -> Mapping[str, InspectedOutput]:
        """Raises HeldOutputError where nothing is to be published."""
        if not self.inspections:
            return {}

        def hold(output: OutputPlan, at: datetime) -> KeptAside:
            held, place = publications[output.name].hold(output.name), self.store_of(output.feed).shown(output.path)
            lies = PublishedOutput(output, place, held.version, records[output.name])
            of = made.available(lies, self.process.name, self.cluster.name, at, ready.definition)
            return KeptAside(held.place, (of, *made.work), made.facts)

        staged = []
        for one in ready.plan.outputs:
            where = publications[one.name]
            staged.append(StagedOutput(one, where.staging_url(one.name), where.keys(one.name), partial(hold, one)))
        return merged(inspect(self.process.name, ready.plan.nominal, staged) for inspect in self.inspections)

    def publish(
        self,
        plan: ProcessInstance,
        publications: Publications,
        records: Mapping[str, int],
        inspected: Mapping[str, InspectedOutput] | None = None,
    ) -> tuple[PublishedOutput, ...]:
        current_cancellation().make_final()  # what is half published is published
        return tuple(
            PublishedOutput(
                output,
                self.store_of(output.feed).shown(output.path),
                publications[output.name].commit(output.name),
                records[output.name],
                kept_versions(self.store_of(output.feed), output.feed, output.instance),
                (inspected or {}).get(output.name),
            )
            for output in plan.outputs
        )

    def data(self, ready: ReadyInstance) -> InstanceData:
        workflow = late_workflow(self.process, ready.late)
        return InstanceData(
            ready.plan, self._executor_of(workflow), self.store, self.store_of, workflow.spark == "session"
        )

    def _executor_of(self, workflow: Workflow) -> Executor:
        return InProcessExecutor(self.cluster) if workflow.spark == "none" else self.executor

    def used(
        self, plan: ProcessInstance, read: Readings, urls: Mapping[str, str], result: WorkflowResult
    ) -> tuple[Usage, tuple[Consumption, ...]]:
        """The usage, and the undeclared instances of feeds in it."""
        found = usage(result.captured, self._declared(plan, read, urls), self._places.find)
        return found, tuple(self._places.read(found))

    @cached_property
    def _inputs(self) -> PlannedInputs:
        return PlannedInputs(self.store_of, self.clock, self.recorded)

    @cached_property
    def _places(self) -> FeedPlaces:
        return FeedPlaces(self.feeds, self.store_of, self.others)

    def _declared(self, plan: ProcessInstance, read: Readings, urls: Mapping[str, str]) -> DeclaredData:
        """Besides declared data, everything in its staging and working locations."""
        used = (self.store, *(self.store_of(output.feed) for output in plan.outputs))
        stores = [volume for one in used for volume in one.there()]
        data = [_input_data(one, read[one.name]) for one in plan.inputs]
        return DeclaredData(
            {one.name: DeclaredInput(one.feed.name, one.urls) for one in data},
            urls,
            [self.store.working, *(store.fs.unstrip_protocol(store.staging) for store in stores)],
        )

    def compute(
        self,
        ready: ReadyInstance,
        settings: Mapping[str, str],
        read: Readings,
        urls: Mapping[str, str],
        unchanged: Callable[[], None] = lambda: None,
    ) -> WorkflowResult:
        """Runs the workflow without publishing; raises CancelledError and WorkflowError.

        ``settings`` are for access to object stores; ``urls`` are those of the outputs, where nothing is yet.
        ``unchanged`` raises StorageError where an input was refreshed since it was read.
        """
        plan, workflow = ready.plan, late_workflow(self.process, ready.late)
        return compute_with_others(
            WorkflowTask(
                process=self.process.name,
                executor=self._executor_of(workflow),
                nominal=plan.nominal,
                timezone=self.process.timezone,
                user=self.owner,
                workflow=workflow,
                entity_root=self.entity_root,
                inputs=tuple(_input_data(one, read[one.name]) for one in plan.inputs),
                outputs=tuple(
                    OutputData(one.name, one.feed, urls[one.name], self._open_keys(one)) for one in plan.outputs
                ),
                properties=plan.properties,
                settings={**settings, **spark_settings(self.process, plan.properties)},
                working=self.store.working,
                run_id=self.run_id,
                unchanged=unchanged,
            )
        )

    def _open_keys(self, output: OutputPlan) -> tuple[str, ...]:
        return TableUri.parse(output.path).open_keys if output.feed.table_on(self.cluster.name) else ()

    def _subject(self, nominal: datetime) -> str:
        return f"{self.process.name} on {self.cluster.name} at {format_instant(nominal)}"


def _input_data(one: InputPlan, read: Sequence[ReadableInstance]) -> InputData:
    data = read_as_data(one.name, one.feed, read, one.partition)
    if one.members is None:
        return data
    folders = (folder.member for instance in read for folder in instance.folders)
    of_tables = (part.member for instance in read for part in instance.partitions for _ in part.partition.places)
    of = (*folders, *of_tables)
    return replace(data, members=Members(one.member_names, one.members.column, one.members.views, of))


def read_as_data(name: str, feed: Feed, read: Sequence[ReadableInstance], partition: str | None = None) -> InputData:
    """The name is for messages."""
    folders = [folder for instance in read for folder in instance.folders]
    of_tables = tuple(one for instance in read for one in instance.partitions)
    places = (place for one in of_tables for place in one.partition.places)
    urls, counted = (*(folder.url for folder in folders), *places), tuple(folder.files for folder in folders)
    versions = tuple(instance.version.version for instance in read)
    return InputData(name, feed, urls, partition, counted, of_tables, versions=versions)


def _read(late: tuple[LateChange, ...], inputs: Mapping[str, tuple[Consumption, ...]]) -> tuple[LateChange, ...]:
    """The changes up to the versions that were read, which may be newer than the requested ones."""
    versions = {(name, one.instance): one.version for name, read in inputs.items() for one in read}
    return tuple(replace(one, after=versions.get((one.input, one.instance)) or one.after) for one in late)
