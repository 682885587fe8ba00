"""Compactions as Dagster assets: ``cluster/feed__compaction`` stands for the effect on ``cluster/feed``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.compaction.readers import InstanceReaders
from falcon_assets.features.compaction.run import CompactionWork
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partition_mappings import mapping_for
from falcon_assets.history.mapping.partitions import AssetPartitions, key_of, partitions_of
from falcon_assets.instances.assets import OpOptions
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.instances.runs.run_definitions import DefinitionRecording, recorded_versions
from falcon_assets.instances.runs.workload_execution import run_workload
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.compactions import CompactionWorkload
from falcon_assets.settings import Settings
from falcon_assets.storage.feed_store import store_of


@dataclass(frozen=True)
class CompactionAssets:
    """Builds the assets of compactions."""

    store: EntityStore
    settings: Settings
    partitions: AssetPartitions
    recording: DefinitionRecording
    op: OpOptions

    def build(self, compaction: CompactionWorkload) -> dg.AssetsDefinition:
        """Builds an asset whose run compacts instances; each is compacted, recorded and fails on its own."""
        feed, cluster = compaction.entity.name, compaction.cluster

        @dg.multi_asset(
            name=compaction.op_name,
            specs=[self._spec(compaction)],
            description=compaction.description,
            backfill_policy=dg.BackfillPolicy.single_run(),
            **self.op.arguments({"falcon/feed": feed, "falcon/cluster": cluster}),
        )
        def compact(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
            run_workload(context, compaction, self.settings, partial(self._work, compaction))
            # As in process assets: the events are recorded already, instance by instance.
            yield from ()

        return compact

    def _spec(self, compaction: CompactionWorkload) -> dg.AssetSpec:
        feed, cluster = compaction.entity, self.store.clusters[compaction.cluster]
        upstream = self.partitions.of_feed(feed, cluster.name)
        mapping = mapping_for(compaction.inputs[0], compaction.timezone, compaction.partitions, upstream)
        declared = feed.compact
        assert declared is not None
        shown = {"falcon/sort": ", ".join(declared.sort) or None, "falcon/target_file_size": declared.target_file_size}
        return dg.AssetSpec(
            key=names.workload_keys(compaction)[0],
            description=compaction.description,
            group_name=names.group_name(feed.groups),
            tags=names.tags({**feed.tags, "falcon/cluster": cluster.name, "falcon/colo": cluster.colo}),
            owners=names.owners(feed.acl),
            kinds={cluster.name},
            partitions_def=partitions_of(compaction.timeline),
            metadata={key: value for key, value in shown.items() if value},
            deps=[dg.AssetDep(names.asset_key(cluster.name, feed.name), partition_mapping=mapping)],
            skippable=True,
        )

    def _work(
        self, compaction: CompactionWorkload, context: dg.AssetExecutionContext, claims: InstanceClaims
    ) -> CompactionWork:
        feed, cluster, settings = compaction.entity, self.store.clusters[compaction.cluster], self.settings
        store = store_of(feed, cluster, settings.home, settings.environ, roots=roots_of(settings))
        _, version = recorded_versions(claims.ledger, self.recording, feed)
        readers = InstanceReaders(compaction, self.store, claims.ledger)
        clock = self.store.landing_clock(feed, cluster.name, settings.clock)
        partition = partial(key_of, compaction.partitions.timeline)
        return CompactionWork(compaction, cluster, store, readers, claims, settings.now, partition, version, clock)
