"""Processes as Dagster assets: one op per process and cluster, materializing the outputs' assets or its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.orchestration.assets.effect_specs import effect_spec
from falcon_assets.orchestration.assets.feed_specs import feed_spec
from falcon_assets.orchestration.assets.resources import resource_key
from falcon_assets.orchestration.mapping import asset_keys as names
from falcon_assets.orchestration.mapping.asset_partitions import AssetPartitions
from falcon_assets.orchestration.mapping.partition_mappings import mapping_for, self_mapping
from falcon_assets.orchestration.platform.open_ledger import open_ledger
from falcon_assets.orchestration.runs.instance_run import InstanceRunner
from falcon_assets.orchestration.runs.instance_work import ProcessWork
from falcon_assets.orchestration.runs.process_execution import ProcessExecution
from falcon_assets.planning.instances.dagster_names import op_name
from falcon_assets.planning.instances.dependencies import own_feeds
from falcon_assets.planning.instances.process_partitions import ProcessPartitions
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf


@dataclass(frozen=True)
class ProcessAssets:
    """Builds the assets of processes.

    Attributes:
        store: The entities.
        settings: The clock, and where everything lies.
        partitions: How assets are partitioned.
    """

    store: EntityStore
    settings: Settings
    partitions: AssetPartitions

    def build(self, process: Process, cluster: Cluster) -> dg.AssetsDefinition:
        """The assets that ``process`` produces on ``cluster``, with the op that computes them.

        One run may carry any range of partitions: every instance in it is read, computed, published and recorded on
        its own, and fails on its own; the run fails at its end if one did.
        """
        partitions = self.partitions.of_process(process, cluster.name)
        work = cache(partial(self._work, process, cluster))
        execution = ProcessExecution(
            process, cluster, partitions, self.settings.now, partial(open_ledger, self.settings), lambda *_: work()
        )
        spark = resource_key(cluster)

        @dg.multi_asset(
            name=op_name(cluster.name, process.name),
            specs=list(self._specs(process, cluster, partitions)),
            description=process.description or None,
            backfill_policy=dg.BackfillPolicy.single_run(),
            op_tags=names.tags({"falcon/process": process.name, "falcon/cluster": cluster.name}),
            required_resource_keys={spark},
        )
        def compute(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
            execution.run(context, lambda: getattr(context.resources, spark).spark_session)
            # A generator without results: the events are recorded already, instance by instance, and returning None
            # would make Dagster record one more for every partition.
            yield from ()

        return compute

    def _work(self, process: Process, cluster: Cluster) -> ProcessWork:
        return ProcessWork(
            InstanceRunner(
                process,
                cluster,
                self.store.feeds,
                ClusterStore(cluster, self.settings.home, self.settings.environ),
                StoresOf(cluster, self.settings.home, self.settings.environ),
                self.store.root,
                process.acl.owner if process.acl else self.settings.user,
            )
        )

    def _specs(self, process: Process, cluster: Cluster, partitions: ProcessPartitions) -> Iterator[dg.AssetSpec]:
        deps = self._deps(process, cluster, partitions)
        own = own_feeds(process)
        shown = [one for one in deps if one.asset_key.path[1] not in own]
        kinds, metadata = (
            process.workflow.kinds,
            _metadata(process) | self._not_shown(process, cluster, deps),
        )
        tags = {**process.tags, "falcon/process": process.name, "falcon/pipeline": process.pipelines[0]}
        if not process.outputs:
            timeline = partitions.timeline
            yield effect_spec(process, cluster, timeline, deps=shown, kinds=kinds, tags=tags, metadata=metadata)
        for output in process.outputs:
            feed = self.store.feeds[output.feed]
            for entry in feed.clusters:
                if entry.name == cluster.name:
                    yield feed_spec(
                        feed,
                        cluster,
                        entry,
                        partitions.timeline,
                        deps=[*shown, *(one for one in deps if one.asset_key.path[1] in own & {feed.name})],
                        kinds=kinds,
                        tags=tags,
                        metadata=metadata,
                        skippable=True,
                    )

    def _deps(self, process: Process, cluster: Cluster, partitions: ProcessPartitions) -> list[dg.AssetDep]:
        """One dependency per input feed.

        Dagster knows one edge per pair of assets: where two inputs read different windows of one feed, the edge says
        that any instance may be meant. What the process reads of an output of its own is a dependency of that output on
        itself. What would make a cycle of different assets is left out, for Dagster has none; instances are none.
        """
        deps: dict[dg.AssetKey, dg.PartitionMapping] = {}
        reader, own = ("process", process.name, cluster.name), own_feeds(process)
        for declared in process.inputs:
            if (("feed", declared.feed, cluster.name), reader) in self.store.left_out:
                continue
            key = names.asset_key(cluster.name, declared.feed)
            upstream = self.partitions.of_feed(self.store.feeds[declared.feed], cluster.name)
            mapping = mapping_for(declared, process.timezone, partitions, upstream)
            deps[key] = mapping if deps.get(key, mapping) == mapping else dg.AllPartitionMapping()
        of_itself = {key: self_mapping(deps[key], partitions) for key in deps if key.path[1] in own}
        shown = {**deps, **of_itself}.items()
        return [dg.AssetDep(key, partition_mapping=mapping) for key, mapping in shown if mapping is not None]

    def _not_shown(self, process: Process, cluster: Cluster, deps: Sequence[dg.AssetDep]) -> dict[str, str]:
        """What the assets are made from besides, as metadata."""
        shown = {one.asset_key for one in deps}
        keys = dict.fromkeys(names.asset_key(cluster.name, declared.feed) for declared in process.inputs)
        besides = [key.to_user_string() for key in keys if key not in shown]
        return {"falcon/not_in_graph": f"{', '.join(besides)}: made from earlier instances of this"} if besides else {}


def _metadata(process: Process) -> dict[str, Any]:
    workflow = process.workflow
    retry = f"{process.retry.policy}, {process.retry.attempts} attempts, {process.retry.delay} apart"
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
