"""The assets that workloads fill, and the jobs that do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.compaction.assets import CompactionAssets
from falcon_assets.features.replication.assets import ReplicationAssets
from falcon_assets.features.replication.run import Copying
from falcon_assets.features.transfers.assets import TransferAssets
from falcon_assets.history.dagster_internals.asset_jobs import AssetJob
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import AssetPartitions
from falcon_assets.instances.assets import OpOptions, ProcessAssets
from falcon_assets.instances.runs.run_definitions import DefinitionRecording
from falcon_assets.planning.compactions import CompactionWorkload
from falcon_assets.planning.transfers import ExportWorkload, ImportWorkload
from falcon_assets.planning.workloads import ProcessWorkload, ReplicationWorkload, Workload
from falcon_assets.settings import Settings
from falcon_assets.storage.copying.copy_task import CopyProgress


def _tell_nobody(name: str, progress: CopyProgress) -> None:
    """Events of the run have the progress already."""


@dataclass
class WorkloadAssets:
    """Builds assets; ``copying`` receives the progress of copies, None: nobody does."""

    store: EntityStore
    settings: Settings
    op: OpOptions = field(default_factory=OpOptions)
    copying: Copying | None = None
    partitions: AssetPartitions = field(init=False)
    recording: DefinitionRecording = field(init=False)

    def __post_init__(self) -> None:
        self.partitions = AssetPartitions(self.store)
        self.recording = DefinitionRecording(self.store.root, self.settings)
        own = (self.store, self.settings, self.partitions, self.recording, self.op)
        self._computed, self._compacted, self._transferred = (
            ProcessAssets(*own),
            CompactionAssets(*own),
            TransferAssets(*own),
        )
        self._copied = ReplicationAssets(*own, self.copying or _tell_nobody)

    def build(self, workloads: Sequence[Workload]) -> dg.AssetsDefinition:
        """The assets of a job, which several replications may fill."""
        first = workloads[0]
        if isinstance(first, ProcessWorkload):
            return self._computed.build(first)
        if isinstance(first, CompactionWorkload):
            return self._compacted.build(first)
        if isinstance(first, ImportWorkload | ExportWorkload):
            return self._transferred.build(first)
        return self._copied.build([one for one in workloads if isinstance(one, ReplicationWorkload)])


def by_job(workloads: Iterable[Workload]) -> list[list[Workload]]:
    found: dict[str, list[Workload]] = {}
    for one in workloads:
        found.setdefault(one.job_name, []).append(one)
    return [*found.values()]


def job_of(workload: Workload) -> AssetJob:
    labels = {f"falcon/{workload.entity.kind}": workload.entity.name, "falcon/cluster": workload.cluster}
    return AssetJob(
        name=workload.job_name,
        selection=dg.AssetSelection.assets(*names.workload_keys(workload)).without_checks(),  # sensors see to those
        description=workload.description,
        tags=names.tags(labels),
        executor_def=dg.in_process_executor,
    )
