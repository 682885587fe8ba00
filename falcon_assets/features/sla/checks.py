"""SLAs as asset checks: one for each asset with an SLA, with an evaluation for each partition that breached it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import dagster as dg
from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.sla.lists import BreachRow, breaches_of
from falcon_assets.features.sla.store import BreachState
from falcon_assets.history.database import parts
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.asset_checks import partitioned_check
from falcon_assets.history.mapping.partitions import AssetPartitions, instant_of_key, key_of
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.dagster_names import sla_op_name
from falcon_assets.planning.input_partitions import FeedAsset
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.workload_partitions import WorkloadPartitions
from falcon_assets.settings import Settings

_IN_ONE_OP = 50
"""Each job of a code location copies the ops with checks of its assets: small ops keep that cheap."""
FEED_CHECK, PROCESS_CHECK = "sla", "process_sla"
"""An asset may have both, of the feed and of the process that makes it."""


@dataclass(frozen=True)
class SlaCheck:
    kind: str
    entity: str
    cluster: str
    key: dg.AssetKey
    partitions: FeedAsset | WorkloadPartitions

    @property
    def name(self) -> str:
        return FEED_CHECK if self.kind == "feed" else PROCESS_CHECK

    @property
    def timeline(self) -> Timeline:
        if isinstance(self.partitions, WorkloadPartitions):
            return self.partitions.timeline
        return self.partitions.partitions

    def spec(self) -> dg.AssetCheckSpec:
        said = f"Whether the instances of {self.kind} {self.entity} meet their SLA"
        return partitioned_check(self.name, self.key, said, self.timeline)

    def partition_of(self, instance: datetime) -> str | None:
        if isinstance(self.partitions, WorkloadPartitions):
            return key_of(self.timeline, self.partitions.partition_of(instance))
        found = max(self.partitions.partitions_of(instance), default=None)
        return None if found is None else key_of(self.timeline, found)

    def instance_of(self, partition: str) -> datetime | None:
        instant = instant_of_key(partition)
        if instant is None:
            return None
        if isinstance(self.partitions, WorkloadPartitions):
            return self.partitions.nominal_of(instant)
        return self.partitions.instance_of(instant)

    def evaluation(
        self, partition: str, rows: Sequence[BreachRow], *, is_over: bool = False
    ) -> dg.AssetCheckEvaluation:
        """Evaluates a partition by the breaches of its instance; ``is_over``: no further breach is possible."""
        is_open = [one for one in rows if one.state is BreachState.OPEN]
        is_missed = any(one.level.is_missed for one in is_open)
        severity = dg.AssetCheckSeverity.ERROR if is_missed else dg.AssetCheckSeverity.WARN
        return dg.AssetCheckEvaluation(
            asset_key=self.key,
            check_name=self.name,
            passed=not is_open,
            severity=severity,
            partition=partition,
            description="; ".join(map(_said, rows)) or ("the SLA was met" if is_over else "no breach is known"),
            metadata={one.level.value: _said(one) for one in rows},
        )


class SlaChecks:
    def __init__(self, store: EntityStore, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._partitions = AssetPartitions(store)

    def find(self, kind: str, entity: str, cluster: str) -> SlaCheck | None:
        if kind == "process":
            workload = self._store.workload(entity, cluster)
            if workload is None or workload.sla is None:
                return None
            key = names.workload_keys(workload)[0]
            return SlaCheck(kind, entity, cluster, key, workload.partitions) if self._has(key) else None
        feed = self._store.feeds.get(entity)
        if feed is None or feed.on(cluster) is None or feed.sla_on(cluster) is None:
            return None
        key = names.asset_key(cluster, entity)
        return SlaCheck(kind, entity, cluster, key, self._partitions.of_feed(feed, cluster)) if self._has(key) else None

    def _has(self, key: dg.AssetKey) -> bool:
        return self._store.includes(*key.path)

    def definitions(self) -> Iterator[dg.AssetChecksDefinition]:
        """Yields ops of each cluster, which report the state of the ledger when a user executes a check."""
        for cluster in self._store.clusters:
            entities = [("feed", name) for name in self._store.feeds]
            entities += [("process", name) for name in self._store.processes]
            of_feeds = (one for one in self._store.workloads if one.cluster == cluster and one.kind != "process")
            entities += [("process", one.name) for one in of_feeds]
            checks = [one for kind, name in entities if (one := self.find(kind, name, cluster)) is not None]
            for number, part in enumerate(parts(checks, _IN_ONE_OP)):
                yield self._definition(cluster, number, part)

    def _definition(self, cluster: str, number: int, checks: Sequence[SlaCheck]) -> dg.AssetChecksDefinition:
        by_key = {(one.key, one.name): one for one in checks}
        specs = {f"check_{place}": one.spec() for place, one in enumerate(checks)}

        # It depends on no asset, or it would be skipped after ops that publish instances and return nothing.
        @dg.op(
            name=sla_op_name(cluster, number),
            description=f"Says what is known of the SLAs on {cluster}",
            out={output: dg.Out(dg.Nothing, is_required=False) for output in specs},
        )
        def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
            has_partitions = context.has_partition_key or context.has_partition_key_range
            partitions = context.partition_keys if has_partitions else []
            with open_ledger(self._settings, context.instance).engine.connect() as connection:
                for key in sorted(context.selected_asset_check_keys):
                    yield from _evaluations(connection, by_key[key.asset_key, key.name], partitions)

        made: dg.AssetChecksDefinition = dg.AssetChecksDefinition.create(
            keys_by_input_name={}, node_def=evaluate, check_specs_by_output_name=specs, can_subset=True
        )
        return made


def _evaluations(
    connection: Connection, check: SlaCheck, partitions: Sequence[str]
) -> Iterator[dg.AssetCheckEvaluation]:
    instances = {partition: check.instance_of(partition) for partition in partitions}
    known = [one for one in instances.values() if one is not None]
    found = breaches_of(connection, [(check.kind, check.entity, check.cluster, instance) for instance in known])
    for partition, instance in instances.items():
        if instance is not None:
            yield check.evaluation(partition, found.get((check.kind, check.entity, check.cluster, instance), ()))


def _said(one: BreachRow) -> str:
    said = f"{one.level.value} was breached at {format_instant(one.deadline)}"
    if one.state is BreachState.OPEN or one.cleared_at is None:
        return said
    return f"{said} and {'met' if one.state is BreachState.MET else 'withdrawn'} at {format_instant(one.cleared_at)}"
