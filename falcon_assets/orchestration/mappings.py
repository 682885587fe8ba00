"""Input windows as Dagster partition mappings: the built-in one wherever it is exact, ours otherwise.

Dagster's daemon and UI know the built-in mappings only; where they meet ours they show Dagster's default instead.
What a run reads never depends on it: the op resolves its inputs itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import dagster as dg

from falcon_assets.model.expression import Kind
from falcon_assets.model.process import Input
from falcon_assets.orchestration.dagster_internals import (
    DynamicPartitionsStore,
    PartitionsSubset,
    UpstreamPartitionsResult,
)
from falcon_assets.orchestration.partitions import instant_of_key, key_of, partitions_of
from falcon_assets.planning.inputs import input_instances
from falcon_assets.planning.process_partitions import ProcessPartitions
from falcon_assets.planning.reach import consumers
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.window_offsets import window_offsets


@dataclass(frozen=True)
class FeedAsset:
    """What a mapping must know of the asset of a feed.

    Attributes:
        feed: The timeline of the feed.
        partitions: The timeline of the asset's partitions: the feed's, or that of a producer that is not one to one.
        producers: Nominal times that write a feed instance, for such a producer; None where partitions are instances.
        written: The feed instance that a nominal time writes, for such a producer.
    """

    feed: Timeline
    partitions: Timeline
    producers: Callable[[datetime], list[datetime]] | None = None
    written: Callable[[datetime], datetime | None] | None = None


def mapping_for(
    declared: Input, timezone: str, downstream: ProcessPartitions, upstream: FeedAsset
) -> dg.PartitionMapping:
    """The mapping from partitions of a process's assets to the partitions of an input's asset.

    ``latest`` and ``future`` depend on what is available: any instance may be the one, which is what Dagster's
    AllPartitionMapping says.
    """
    if declared.start.call.kind is Kind.INSTANCES:
        return dg.AllPartitionMapping()
    offsets = _offsets(declared, downstream, upstream)
    if offsets is not None:
        return _builtin(*offsets)
    return InputWindowMapping(declared, timezone, downstream, upstream)


def _offsets(declared: Input, downstream: ProcessPartitions, upstream: FeedAsset) -> tuple[int, int] | None:
    """Offsets for the built-in mapping, in steps of the downstream partitions; None where it would not be exact."""
    if upstream.producers is not None:
        return None
    below, above = partitions_of(downstream.timeline), partitions_of(upstream.partitions)
    windows = dg.TimeWindowPartitionsDefinition
    if not isinstance(below, windows) or not isinstance(above, windows) or below.timezone != above.timezone:
        return None
    offsets = window_offsets(downstream.nominal, upstream.feed, declared.start.call, declared.end.call)
    if offsets is None or not _starts_windows(upstream.feed, downstream.nominal):
        return None
    lag = _lag(downstream)
    if lag is None:
        return None
    offsets = (offsets[0] - lag, offsets[1] - lag)
    # With exclusions a window ends at the next tick, excluded or not: only the same cron line maps exactly.
    same = below.cron_schedule == above.cron_schedule and below.exclusions == above.exclusions
    plain = not below.exclusions and not above.exclusions
    return offsets if plain or (same and offsets == (0, 0)) else None


def _starts_windows(feed: Timeline, process: Timeline) -> bool:
    """Whether every step of the process is a step of the feed: Dagster counts a window that is only touched as read."""
    if feed.instance(feed.index_at_or_before(process.start)) != process.start:
        return False
    if feed.frequency.is_absolute and process.frequency.is_absolute:
        return not process.frequency.length % feed.frequency.length
    return feed.frequency.length <= process.frequency.length


def _lag(downstream: ProcessPartitions) -> int | None:
    """By how many steps a partition lies after its nominal time; None where the two grids are out of phase."""
    if downstream.shift is None:
        return 0
    index = downstream.timeline.index_at_or_before(downstream.nominal.start)
    in_phase = downstream.timeline.instance(index) == downstream.nominal.start
    return downstream.shift - index if in_phase else None


@lru_cache(maxsize=1024)
def _builtin(start: int, end: int) -> dg.TimeWindowPartitionMapping:
    with warnings.catch_warnings():
        # One of its parameters is "beta": Dagster says so for every single use.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.TimeWindowPartitionMapping(
            start_offset=start, end_offset=end, allow_nonexistent_upstream_partitions=True
        )


@dataclass(frozen=True)
class InputWindowMapping(dg.PartitionMapping):
    """The window of one input, resolved instance by instance."""

    declared: Input
    timezone: str
    downstream: ProcessPartitions
    upstream: FeedAsset

    @property
    def description(self) -> str:
        """Shown in the UI."""
        return f"Feed instances from {self.declared.start} to {self.declared.end}."

    def validate_partition_mapping(
        self,
        upstream_partitions_def: dg.PartitionsDefinition,
        downstream_partitions_def: dg.PartitionsDefinition | None,
    ) -> None:
        """Nothing to check: it is built for exactly these two."""

    def get_upstream_mapped_partitions_result_for_partitions(
        self,
        downstream_partitions_subset: PartitionsSubset | None,
        downstream_partitions_def: dg.PartitionsDefinition | None,
        upstream_partitions_def: dg.PartitionsDefinition,
        current_time: datetime | None = None,
        dynamic_partitions_store: DynamicPartitionsStore | None = None,
    ) -> UpstreamPartitionsResult:
        """The partitions of the input's asset that hold the windows of the given partitions."""
        keys = downstream_partitions_subset.get_partition_keys() if downstream_partitions_subset else ()
        found: set[datetime] = set()
        for nominal in map(self.downstream.nominal_of, _instants(keys)):
            if self.downstream.nominal.contains(nominal):
                found.update(input_instances(self.declared, self.upstream.feed, nominal, self.timezone))
        if self.upstream.producers is not None:
            found = {producer for instance in found for producer in self.upstream.producers(instance)}
        return UpstreamPartitionsResult(
            partitions_subset=_subset(upstream_partitions_def, self.upstream.partitions, found),
            required_but_nonexistent_subset=upstream_partitions_def.empty_subset(),
        )

    def get_downstream_partitions_for_partitions(
        self,
        upstream_partitions_subset: PartitionsSubset,
        upstream_partitions_def: dg.PartitionsDefinition,
        downstream_partitions_def: dg.PartitionsDefinition,
        current_time: datetime | None = None,
        dynamic_partitions_store: DynamicPartitionsStore | None = None,
    ) -> PartitionsSubset:
        """The partitions whose windows hold one of the given partitions of the input's asset."""
        instances: Iterable[datetime | None] = _instants(upstream_partitions_subset.get_partition_keys())
        if self.upstream.written is not None:
            instances = [self.upstream.written(nominal) for nominal in instances if nominal is not None]
        found = {
            self.downstream.partition_of(nominal)
            for instance in instances
            if instance is not None
            for nominal in consumers(
                self.declared, self.downstream.nominal, self.upstream.feed, self.timezone, instance
            )
        }
        return _subset(downstream_partitions_def, self.downstream.timeline, found)


def _instants(keys: Iterable[str]) -> list[datetime]:
    return [instant for key in keys if (instant := instant_of_key(key)) is not None]


def _subset(definition: dg.PartitionsDefinition, timeline: Timeline, instants: Iterable[datetime]) -> PartitionsSubset:
    keys = (key_of(timeline, instant) for instant in sorted(instants) if timeline.contains(instant))
    return definition.subset_with_partition_keys(keys)
