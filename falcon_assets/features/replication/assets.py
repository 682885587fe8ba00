"""Replications as Dagster assets: one op per feed and target, copying from every source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.replication.run import Copying, ReplicationWork, Route
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.mapping.partition_mappings import mapping_for
from falcon_assets.history.mapping.partitions import AssetPartitions
from falcon_assets.instances.assets import OpOptions, feed_spec
from falcon_assets.instances.run_executors import executor_of_run
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.instances.runs.run_definitions import DefinitionRecording, recorded_versions
from falcon_assets.instances.runs.workload_execution import run_workload
from falcon_assets.instances.spark_resource import resource_key
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.replication import contributions
from falcon_assets.planning.workloads import ReplicationWorkload
from falcon_assets.settings import Settings
from falcon_assets.storage.feed_store import store_of


@dataclass(frozen=True)
class ReplicationAssets:
    """Builds the assets of feeds on their targets; ``copying`` receives the progress of copies."""

    store: EntityStore
    settings: Settings
    partitions: AssetPartitions
    recording: DefinitionRecording
    op: OpOptions
    copying: Copying

    def build(self, replications: Sequence[ReplicationWorkload]) -> dg.AssetsDefinition:
        """Builds the asset of a feed on its target.

        A run of a coordinator copies from one source, any other run from all of them; each instance of each source is
        copied, recorded and fails on its own.
        """
        feed, cluster = replications[0].entity, self.store.clusters[replications[0].cluster]
        spark = resource_key(cluster)

        @dg.multi_asset(
            name=replications[0].op_name,
            specs=[self._spec(replications, feed, cluster)],
            description=f"Copies {feed.name} to {cluster.name}",
            backfill_policy=dg.BackfillPolicy.single_run(),
            required_resource_keys={spark},
            **self.op.arguments({"falcon/feed": feed.name, "falcon/cluster": cluster.name}),
        )
        def copy(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
            wanted = context.run.tags.get(run_tags.PROCESS)
            chosen = [one for one in replications if one.name == wanted] or replications
            failures = list[str]()
            for one in chosen:
                try:
                    run_workload(context, one, self.settings, partial(self._work, one))
                except dg.Failure as failure:
                    failures.append(failure.description or one.name)
            if failures:
                raise dg.Failure("\n".join(failures))
            # As in process assets: the events are recorded already, instance by instance.
            yield from ()

        return copy

    def _spec(self, replications: Sequence[ReplicationWorkload], feed: Feed, cluster: Cluster) -> dg.AssetSpec:
        return feed_spec(
            feed,
            cluster,
            replications[0].partitions.timeline,
            deps=list(self._deps(replications)),
            kinds=("spark",),
            tags={"falcon/sources": ".".join(one.reads_on for one in replications)},
            metadata={"falcon/sources": ", ".join(one.reads_on for one in replications)},
            skippable=True,
        )

    def _deps(self, replications: Sequence[ReplicationWorkload]) -> Iterator[dg.AssetDep]:
        for one in replications:
            upstream = self.partitions.of_feed(one.entity, one.reads_on)
            mapping = mapping_for(one.inputs[0], one.timezone, one.partitions, upstream)
            yield dg.AssetDep(names.asset_key(one.reads_on, one.entity.name), partition_mapping=mapping)

    def _work(
        self, replication: ReplicationWorkload, context: dg.AssetExecutionContext, claims: InstanceClaims
    ) -> ReplicationWork:
        feed, cluster = replication.entity, self.store.clusters[replication.cluster]
        home, environ, roots = self.settings.home, self.settings.environ, roots_of(self.settings)
        reads_on = self.store.everywhere[replication.reads_on]
        source = store_of(feed, reads_on, home, environ, readonly=True, roots=roots)
        parts = contributions(feed, cluster.name, self.store.everywhere)
        executor = executor_of_run(context, claims.ledger, self.store, replication)
        target = store_of(feed, executor.cluster, home, environ, roots=roots)
        route = Route(replication, feed, source, target, parts)
        _, version = recorded_versions(claims.ledger, self.recording, feed)
        clock = self.store.landing_clock(feed, replication.reads_on, self.settings.clock)
        return ReplicationWork(route, executor, claims, context.log.info, self.copying, version, clock)
