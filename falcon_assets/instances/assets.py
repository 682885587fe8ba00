"""Dagster assets of processes, and of the feeds that they write."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import dagster as dg
from pydantic import Field

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import count_of
from falcon_assets.history.dagster_internals.events import record_in_step
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.mapping.partition_mappings import mapping_for, self_mapping
from falcon_assets.history.mapping.partitions import AssetPartitions, partitions_of
from falcon_assets.hooks import hooks
from falcon_assets.instances.run_executors import executor_of_run
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.instances.runs.instance_work import ProcessWork
from falcon_assets.instances.runs.run_definitions import (
    DefinitionRecording,
    OldDefinitions,
    RunDefinitions,
    recorded_versions,
)
from falcon_assets.instances.runs.workload_execution import run_workload
from falcon_assets.instances.spark_resource import resource_key
from falcon_assets.instances.store.known_instances import recorded_on
from falcon_assets.instances.store.watermarks import watermarks_on
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.workloads import ProcessWorkload
from falcon_assets.settings import Settings


def effect_spec(
    process: Process,
    cluster: Cluster,
    timeline: Timeline,
    *,
    deps: Sequence[dg.AssetDep],
    kinds: Collection[str],
    tags: Mapping[str, str],
    metadata: Mapping[str, Any],
) -> dg.AssetSpec:
    """``cluster/process`` stands for the effect of a process without outputs."""
    return dg.AssetSpec(
        key=names.asset_key(cluster.name, process.name),
        description=process.description or None,
        group_name=names.group_name(process.pipelines),
        tags=names.tags({**tags, "falcon/cluster": cluster.name, "falcon/colo": cluster.colo}),
        owners=names.owners(process.acl),
        kinds={cluster.name, *kinds},
        partitions_def=partitions_of(timeline),
        metadata={
            "falcon/frequency": str(process.frequency),
            "falcon/timezone": process.timezone,
            "falcon/validity_start": timeline.start.isoformat(),
            "falcon/validity_end": timeline.end.isoformat(),
            **metadata,
            **{f"tag/{key}": value for key, value in process.tags.items()},
        },
        deps=deps,
        skippable=True,
    )


def feed_spec(
    feed: Feed,
    cluster: Cluster,
    timeline: Timeline,
    *,
    deps: Sequence[dg.AssetDep] = (),
    kinds: Sequence[str] = (),
    tags: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    skippable: bool = False,
) -> dg.AssetSpec:
    return dg.AssetSpec(
        key=names.asset_key(cluster.name, feed.name),
        description=feed.description or None,
        group_name=names.group_name(feed.groups),
        tags=names.tags({**(tags or {}), **feed.tags, "falcon/cluster": cluster.name, "falcon/colo": cluster.colo}),
        owners=names.owners(feed.acl),
        kinds={cluster.name, feed.format.lower(), *kinds},  # three at most, and the graph shows them on the node
        partitions_def=partitions_of(timeline),
        metadata={**_metadata(feed, cluster), **(metadata or {})},
        deps=deps,
        skippable=skippable,
    )


def _metadata(feed: Feed, cluster: Cluster) -> dict[str, Any]:
    locations, table = feed.locations_on(cluster.name), feed.table_on(cluster.name)
    sla, entry = feed.sla_on(cluster.name), next(one for one in feed.clusters if one.name == cluster.name)
    retention = f"{entry.retention.action} after {entry.retention.limit}" if entry.retention else None
    shown = {
        "falcon/frequency": feed.frequency,
        "falcon/timezone": feed.timezone,
        "falcon/path_timezone": entry.path_timezone or feed.path_timezone,
        "falcon/validity_start": entry.validity.start.isoformat(),
        "falcon/validity_end": entry.validity.end.isoformat(),
        "falcon/location": locations.data,
        "falcon/table": table.uri if table else None,
        "falcon/availability_flag": feed.availability_flag,
        "falcon/late_cut_off": feed.late_arrival.cut_off if feed.late_arrival else None,
        "falcon/sla": f"low {sla.low}, high {sla.high}" if sla else None,
        "falcon/retention": retention,
        "falcon/replication": entry.type,
        "falcon/partitions": ", ".join(feed.partitions) or None,
        "falcon/groups": ", ".join(feed.groups) or None,
        "falcon/schema": feed.schema_,
        **{f"tag/{key}": value for key, value in feed.tags.items()},
        **{f"property/{key}": value for key, value in feed.properties.items()},
    }
    return {key: str(value) for key, value in shown.items() if value is not None}


class OpOptions(dg.Model, dg.Resolvable):
    """The ops of processes and replications."""

    pool: str | None = Field(default=None, description="Concurrency pool of Dagster that limits how many run at once.")
    tags: dict[str, str] = Field(default={}, description="Tags besides those of their entities.")

    def arguments(self, labels: Mapping[str, str]) -> dict[str, Any]:
        return {"pool": self.pool, "op_tags": {**self.tags, **names.tags(labels)}}


@dataclass(frozen=True)
class ProcessAssets:
    store: EntityStore
    settings: Settings
    partitions: AssetPartitions
    recording: DefinitionRecording
    op: OpOptions

    def build(self, workload: ProcessWorkload) -> dg.AssetsDefinition:
        """The assets that a process produces on a cluster, with the op that computes them.

        A run may carry any range of partitions: every instance in it is read, computed, published and recorded on its
        own, and fails on its own; the run fails at its end if any did.
        """
        process, cluster = workload.entity, self.store.clusters[workload.cluster]
        present = cache(partial(InstanceRunner.of, process, cluster, self.store, self.settings))
        spark = resource_key(cluster)

        def work(context: dg.AssetExecutionContext, claims: InstanceClaims) -> ProcessWork:
            ledger, run = claims.ledger, context.run
            executor = executor_of_run(context, ledger, self.store, workload)
            recorded = recorded_on(ledger.engine, cluster.name)
            watermark = watermarks_on(lambda: ledger.engine, self.store.feeds, cluster.name, self.settings.now)
            own = {"store": self.store, "cluster": cluster, "settings": self.settings}
            inspections = hooks().output_inspection(
                ledger=ledger, **own, record=record_in_step(context.op_execution_context)
            )
            runner = replace(
                present(),
                executor=executor,
                run_id=run.run_id,
                recorded=recorded,
                watermark=watermark,
                inspections=inspections,
            )
            versions, number = recorded_versions(ledger, self.recording, process)
            old = OldDefinitions(process.name, cluster.name, self.store, self.settings.home, ledger.engine)

            def older(version: int) -> InstanceRunner:
                declared, root = old.of(version)
                return replace(runner, process=declared, entity_root=root)

            uses_latest = run_tags.uses_latest(run.tags)
            definitions = RunDefinitions(runner, number, versions, uses_latest, older, context.log.info)
            return ProcessWork(definitions, workload, ledger, self.settings.environ)

        @dg.multi_asset(
            name=workload.op_name,
            specs=list(self._specs(workload, cluster)),
            description=process.description or None,
            backfill_policy=dg.BackfillPolicy.single_run(),
            required_resource_keys={spark},
            **self.op.arguments({"falcon/process": process.name, "falcon/cluster": cluster.name}),
        )
        def compute(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
            run_workload(context, workload, self.settings, work)
            # A generator without results: the events are recorded already, instance by instance, and returning None
            # would make Dagster record another event for every partition.
            yield from ()

        return compute

    def _specs(self, workload: ProcessWorkload, cluster: Cluster) -> Iterator[dg.AssetSpec]:
        process, own, timeline = workload.entity, workload.own_feeds, workload.partitions.timeline
        deps = self._deps(workload)
        shown = [one for one in deps if one.asset_key.path[1] not in own]
        kinds, metadata = process.workflow.kinds, _metadata_of_process_asset(process) | _not_shown(workload, deps)
        tags = {**process.tags, "falcon/process": process.name, "falcon/pipeline": process.pipelines[0]}
        if not process.outputs:
            yield effect_spec(process, cluster, timeline, deps=shown, kinds=kinds, tags=tags, metadata=metadata)
        for output in process.outputs:
            feed = self.store.feeds[output.feed]
            yield feed_spec(
                feed,
                cluster,
                timeline,
                deps=[*shown, *(one for one in deps if one.asset_key.path[1] in own & {feed.name})],
                kinds=kinds,
                tags=tags,
                metadata=metadata,
                skippable=True,
            )

    def _deps(self, workload: ProcessWorkload) -> list[dg.AssetDep]:
        """One dependency per input feed: Dagster has one edge per pair of assets.

        Two inputs with different windows of one feed therefore map all partitions. Reads of an own output are a
        dependency of that output on itself. Edges that would close a cycle of different assets are left out, as Dagster
        allows none.
        """
        deps: dict[dg.AssetKey, dg.PartitionMapping] = {}
        cluster, partitions = workload.cluster, workload.partitions
        reader = ("process", workload.name, cluster)
        for declared in workload.inputs:
            if (("feed", declared.feed, cluster), reader) in self.store.relations.left_out:
                continue
            key = names.asset_key(cluster, declared.feed)
            upstream = self.partitions.of_feed(self.store.feeds[declared.feed], cluster)
            mapping = mapping_for(declared, workload.timezone, partitions, upstream)
            deps[key] = mapping if deps.get(key, mapping) == mapping else dg.AllPartitionMapping()
        of_itself = {key: self_mapping(deps[key], partitions) for key in deps if key.path[1] in workload.own_feeds}
        shown = {**deps, **of_itself}.items()
        return [dg.AssetDep(key, partition_mapping=mapping) for key, mapping in shown if mapping is not None]


def _not_shown(workload: ProcessWorkload, deps: Sequence[dg.AssetDep]) -> dict[str, str]:
    """Inputs left out of the graph, as metadata."""
    shown = {one.asset_key for one in deps}
    keys = dict.fromkeys(names.asset_key(workload.cluster, declared.feed) for declared in workload.inputs)
    besides = [key.to_user_string() for key in keys if key not in shown]
    return {"falcon/not_in_graph": f"{', '.join(besides)}: made from earlier instances of this"} if besides else {}


def _metadata_of_process_asset(process: Process) -> dict[str, Any]:
    workflow = process.workflow
    retry = f"{process.retry.policy}, {count_of(process.retry.attempts, 'more attempt')}, {process.retry.delay} apart"
    retry = "final: no further attempt" if process.retry.policy == "final" else retry
    windows = [
        f"{one.name} = {one.feed} {one.start}..{one.end}" + " (optional)" * one.optional for one in process.inputs
    ]
    return {
        "falcon/process": process.name,
        "falcon/process_frequency": str(process.frequency),
        "falcon/pipelines": ", ".join(process.pipelines),
        "falcon/workflow": " ".join(filter(None, (workflow.engine, workflow.program, workflow.name, workflow.version))),
        "falcon/inputs": "; ".join(windows) or "none",
        "falcon/order": f"{process.order}, {process.parallel} at once",
        "falcon/retry": retry,
    }
