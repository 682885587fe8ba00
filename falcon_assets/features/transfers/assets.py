"""Imports and exports as Dagster assets: an import makes its feed, an export an asset of its own, for its effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.compute.executor import Executor
from falcon_assets.entities.definition_versions import EntityVersions
from falcon_assets.features.datasources.access import access_to
from falcon_assets.features.transfers.exporting import Exporting
from falcon_assets.features.transfers.file_import import FileImport
from falcon_assets.features.transfers.importing import Importing
from falcon_assets.features.transfers.store import ChangesRead, changes_read, last_execution
from falcon_assets.features.transfers.work import Moving, process_of
from falcon_assets.history.dagster_internals.events import record_in_step
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partition_mappings import mapping_for
from falcon_assets.history.mapping.partitions import AssetPartitions, partitions_of
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.hooks import hooks
from falcon_assets.instances.assets import OpOptions, feed_spec
from falcon_assets.instances.run_executors import executor_of_run
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.instances.runs.instance_work import InstanceWork, ProcessWork
from falcon_assets.instances.runs.run_definitions import DefinitionRecording, RunDefinitions, recorded_versions
from falcon_assets.instances.runs.workload_execution import run_workload
from falcon_assets.instances.spark_resource import resource_key
from falcon_assets.instances.store.known_instances import recorded_on
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.transfers import ExportWorkload, ImportWorkload
from falcon_assets.settings import Settings
from falcon_assets.storage.feed_store import store_of


@dataclass(frozen=True)
class TransferAssets:
    """Builds the assets of imports and exports."""

    store: EntityStore
    settings: Settings
    partitions: AssetPartitions
    recording: DefinitionRecording
    op: OpOptions

    def build(self, workload: ImportWorkload | ExportWorkload) -> dg.AssetsDefinition:
        """Builds an asset whose run transfers instances; each is computed, recorded and fails on its own."""
        feed, cluster = workload.entity, self.store.clusters[workload.cluster]
        spark = resource_key(cluster)

        def work(context: dg.AssetExecutionContext, claims: InstanceClaims) -> InstanceWork:
            ledger = claims.ledger
            executor = executor_of_run(context, ledger, self.store, workload)
            _, version = recorded_versions(ledger, self.recording, feed)
            if isinstance(workload, ImportWorkload) and workload.declared.source.path:
                return self._files(workload, executor, claims, version)
            moving = self._moving(workload, ledger)
            runner = replace(
                InstanceRunner.of(process_of(workload, moving), cluster, self.store, self.settings),
                executor=executor,
                run_id=context.run.run_id,
                recorded=recorded_on(ledger.engine, cluster.name),
                inspections=hooks().output_inspection(
                    ledger=ledger,
                    store=self.store,
                    cluster=cluster,
                    settings=self.settings,
                    record=record_in_step(context.op_execution_context),
                ),
            )
            same: Callable[[int], InstanceRunner] = lambda _: runner  # noqa: E731 - of a feed only the present one
            definitions = RunDefinitions(runner, version, EntityVersions(), True, same, context.log.info)
            return ProcessWork(definitions, workload, ledger, self.settings.environ)

        @dg.multi_asset(
            name=workload.op_name,
            specs=[self._spec(workload)],
            description=workload.description,
            backfill_policy=dg.BackfillPolicy.single_run(),
            required_resource_keys={spark},
            **self.op.arguments({"falcon/feed": feed.name, "falcon/cluster": cluster.name}),
        )
        def transfer(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
            run_workload(context, workload, self.settings, work)
            # As in process assets: the events are recorded already, instance by instance.
            yield from ()

        return transfer

    def _files(
        self, workload: ImportWorkload, executor: Executor, claims: InstanceClaims, version: int | None
    ) -> FileImport:
        settings, cluster = self.settings, self.store.clusters[workload.cluster]
        access = access_to(self.store.datasource(workload.datasource), settings.environ, write=False)
        store = store_of(workload.entity, cluster, settings.home, settings.environ, roots=roots_of(settings))
        return FileImport(workload, access, store, executor, claims, settings.now, version)

    def _moving(self, workload: ImportWorkload | ExportWorkload, ledger: Ledger) -> Moving:
        environ, datasource = self.settings.environ, self.store.datasource(workload.datasource)
        if isinstance(workload, ExportWorkload):

            def before(nominal: datetime) -> str | None:
                ledger.catch_up()
                with ledger.engine.connect() as connection:
                    return last_execution(connection, workload.name, workload.cluster, nominal)

            return Exporting(workload, datasource, environ, before, self.settings.now)

        def known(nominal: datetime) -> ChangesRead:
            ledger.catch_up()
            with ledger.engine.connect() as connection:
                return changes_read(connection, workload.name, workload.cluster, nominal)

        return Importing(workload, datasource, environ, known, self.settings.now)

    def _spec(self, workload: ImportWorkload | ExportWorkload) -> dg.AssetSpec:
        feed, cluster = workload.entity, self.store.clusters[workload.cluster]
        datasource = self.store.datasource(workload.datasource)
        shown = {"falcon/datasource": datasource.name, "falcon/datasource_type": datasource.type}
        if isinstance(workload, ImportWorkload):
            source = {**shown, "falcon/source": workload.declared.source.what}
            line = workload.partitions.timeline
            return feed_spec(feed, cluster, line, kinds=(datasource.type,), metadata=source, skippable=True)
        upstream = self.partitions.of_feed(feed, cluster.name)
        mapping = mapping_for(workload.inputs[0], workload.timezone, workload.partitions, upstream)
        return dg.AssetSpec(
            key=names.workload_keys(workload)[0],
            description=workload.description,
            group_name=names.group_name(feed.groups),
            tags=names.tags({**feed.tags, "falcon/cluster": cluster.name, "falcon/colo": cluster.colo}),
            owners=names.owners(feed.acl),
            kinds={cluster.name, datasource.type},
            partitions_def=partitions_of(workload.timeline),
            metadata={**shown, "falcon/target": workload.declared.target.table},
            deps=[dg.AssetDep(names.asset_key(cluster.name, feed.name), partition_mapping=mapping)],
            skippable=True,
        )
