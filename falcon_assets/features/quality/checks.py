"""Declared checks as asset checks of Dagster, with an evaluation for each partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.quality.events import HeldAccepted, InstanceChecked, InvalidAccepted
from falcon_assets.features.quality.store import VerdictRow, present_version
from falcon_assets.features.quality.verdict import QualityResult
from falcon_assets.history.database import parts
from falcon_assets.history.events.event_log import observation
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.asset_checks import partitioned_check
from falcon_assets.history.mapping.partitions import AssetPartitions, instant_of_key
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.quality_check import QualityCheck
from falcon_assets.planning.dagster_names import op_name
from falcon_assets.settings import Settings

_IN_ONE_OP = 10
"""Feeds: a person executes the checks of one, and each job copies the ops of its assets."""


class QualityChecks:
    def __init__(self, store: EntityStore, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._partitions = AssetPartitions(store)

    def feeds_on(self, cluster: str) -> list[Feed]:
        """The feeds there whose versions are checked or profiled."""
        found = (one for one in self._store.feeds.values() if one.checks or one.profile)
        return [one for one in found if one.on(cluster) and self._store.includes(cluster, one.name)]

    def partition_of(self, feed: Feed, cluster: str, instance: datetime) -> str:
        return self._partitions.partition_of(feed, cluster, instance)

    def evaluations(self, feed: Feed, found: InstanceChecked) -> Iterator[dg.AssetCheckEvaluation]:
        declared = {one.title for one in feed.checks}
        partition = self.partition_of(feed, found.cluster, found.instance)
        for one in found.checks:
            if one.name in declared:
                shown = _overruled(one, found.overruled) if found.overruled and one.is_error else one
                yield _evaluation(names.asset_key(found.cluster, feed.name), partition, shown, found.checked_version)

    def accepted(
        self, feed: Feed, row: VerdictRow | None, accepted: InvalidAccepted
    ) -> Iterator[dg.AssetCheckEvaluation | dg.AssetObservation]:
        """The events by which a person overrules a verdict, if there is one: failed checks, and last the record."""
        key = names.asset_key(accepted.cluster, feed.name)
        partition = self.partition_of(feed, accepted.cluster, accepted.instance)
        declared = {one.title for one in feed.checks}
        said = f"accepted by {accepted.accepted_by}: {accepted.reason}"
        for one in row.checks if row else ():
            if one.is_error and one.name in declared:
                yield _evaluation(key, partition, _overruled(one, said), accepted.accepted_version)
        about = f"{feed.name} {format_instant(accepted.instance)} is {said}"
        yield observation(key, partition, accepted, description=about)

    def held_accepted(self, feed: Feed, accepted: HeldAccepted) -> dg.AssetObservation:
        key, partition = (
            names.asset_key(accepted.cluster, feed.name),
            self.partition_of(feed, accepted.cluster, accepted.instance),
        )
        said = f"what is held of {feed.name} {format_instant(accepted.instance)} is accepted by"
        return observation(
            key, partition, accepted, description=f"{said} {accepted.held_accepted_by}: {accepted.reason}"
        )

    def definitions(self) -> Iterator[dg.AssetChecksDefinition]:
        """Yields ops of each cluster, which check the instances of partitions when a user executes a check."""
        for cluster in self._store.clusters:
            for number, part in enumerate(parts([one for one in self.feeds_on(cluster) if one.checks], _IN_ONE_OP)):
                yield self._definition(cluster, number, part)

    def _definition(self, cluster: str, number: int, feeds: Sequence[Feed]) -> dg.AssetChecksDefinition:
        specs = {
            f"check_{place}_{at}": self._spec(cluster, feed, check)
            for place, feed in enumerate(feeds)
            for at, check in enumerate(feed.checks)
        }
        by_name = {feed.name: feed for feed in feeds}

        @dg.op(
            name=op_name(cluster, f"asset_checks_of_the_quality_of_all_feeds_{number}"),
            description=f"Checks instances of feeds on {cluster}",
            out={output: dg.Out(dg.Nothing, is_required=False) for output in specs},
        )
        def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
            has_partitions = context.has_partition_key or context.has_partition_key_range
            ledger, selected = open_ledger(self._settings, context.instance), context.selected_asset_check_keys
            for name in sorted({key.asset_key.path[-1] for key in selected}):
                for partition in context.partition_keys if has_partitions else []:
                    found = self._checked(ledger, cluster, by_name[name], partition)
                    wanted = {key.name for key in selected if key.asset_key.path[-1] == name}
                    for one in found:
                        if one.name in wanted:
                            yield _evaluation(names.asset_key(cluster, name), partition, one)

        made: dg.AssetChecksDefinition = dg.AssetChecksDefinition.create(
            keys_by_input_name={}, node_def=evaluate, check_specs_by_output_name=specs, can_subset=True
        )
        return made

    def _checked(self, ledger: Ledger, cluster: str, feed: Feed, partition: str) -> Sequence[QualityResult]:
        """Measures all checks of the feed anew; empty: there is nothing to check."""
        from falcon_assets.features.quality.checking import InstanceChecker  # noqa: PLC0415 - it needs Spark

        instant = instant_of_key(partition)
        instance = None if instant is None else self._partitions.of_feed(feed, cluster).instance_of(instant)
        if instance is None:
            return ()
        ledger.catch_up()
        key = (cluster, feed.name, instance)
        with ledger.engine.connect() as connection:
            version = present_version(connection, key)
        if version is None:
            return ()
        checker = InstanceChecker(self._store, self._store.cluster(cluster), self._settings, ledger)
        row = checker.check(feed, key, version, full=True, anew=True)
        return row.checks if row else ()

    def _spec(self, cluster: str, feed: Feed, check: QualityCheck) -> dg.AssetCheckSpec:
        declared = check.model_dump(mode="json", exclude_defaults=True)
        timeline = self._partitions.of_feed(feed, cluster).partitions
        key, metadata = names.asset_key(cluster, feed.name), {"declared": declared}
        return partitioned_check(check.title, key, (type(check).__doc__ or "").strip(), timeline, metadata)


def _overruled(one: QualityResult, by: str) -> QualityResult:
    return replace(one, passed=True, said=f"{by}; {one.said}")


def _evaluation(
    key: dg.AssetKey, partition: str, one: QualityResult, version: str | None = None
) -> dg.AssetCheckEvaluation:
    # Distributions are kept for later comparisons; people see their distance.
    figures = {name: value for name, value in one.figures.items() if isinstance(value, int | float | str)}
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=one.name,
        passed=one.passed,
        severity=dg.AssetCheckSeverity.ERROR if one.severity == "error" else dg.AssetCheckSeverity.WARN,
        partition=partition,
        description=one.said,
        metadata={**figures, **({"checked_version": version} if version else {})},
    )
