"""Partition mapping for input windows that no mapping of Dagster's expresses exactly."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Self

import dagster as dg
from pydantic import TypeAdapter

from falcon_assets.history.dagster_internals.partitions import KeyMapping, known_to_daemon_and_ui
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import AssetPartitions, instant_of_key, key_of, partitions_of
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Input
from falcon_assets.planning.input_partitions import FeedAsset, InputWindow, MemberAsset
from falcon_assets.planning.input_windows import widest
from falcon_assets.planning.rollups import members_of
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.window_offsets import window_offsets
from falcon_assets.planning.workload_partitions import WorkloadPartitions

_ADAPTER = TypeAdapter(InputWindow)
_MEMBERS = TypeAdapter(MemberAsset)


@known_to_daemon_and_ui
class InputWindowMapping(KeyMapping):
    """An :class:`InputWindow`, resolved instance by instance.

    The daemon and the UI know the class because ``dagster.yaml`` makes them load
    :mod:`falcon_assets.history.platform.instance_storage`.
    """

    @classmethod
    def of(cls, window: InputWindow) -> Self:
        return cls.of_text(_ADAPTER.dump_json(window).decode())

    @property
    def window(self) -> InputWindow:
        return _window(self.text)

    @property
    def description(self) -> str:
        declared = self.window.declared
        return f"Feed instances from {declared.start} to {declared.end}."

    def upstream_keys(self, keys: Iterable[str]) -> Iterable[str]:
        return _related(self.window.upstream.partitions, keys, self.window.read_by)

    def downstream_keys(self, keys: Iterable[str]) -> Iterable[str]:
        return _related(self.window.downstream.timeline, keys, self.window.readers_of)


@known_to_daemon_and_ui
class RollupMapping(KeyMapping):
    """A :class:`MemberAsset`: the partitions of a member's asset that make a partition of a roll-up."""

    @property
    def member(self) -> MemberAsset:
        return _member(self.text)

    @property
    def description(self) -> str:
        return "Feed instances in the period of the partition."

    def upstream_keys(self, keys: Iterable[str]) -> Iterable[str]:
        return _related(self.member.asset.partitions, keys, self.member.made_of)

    def downstream_keys(self, keys: Iterable[str]) -> Iterable[str]:
        return _related(self.member.membership.rollup, keys, self.member.rollups)


def rollup_deps(feed: Feed, cluster: str, partitions: AssetPartitions) -> Iterator[dg.AssetDep]:
    """Yields the members of a roll-up as dependencies of its asset on that cluster."""
    for one in members_of(feed, cluster):
        asset = MemberAsset(one.membership, partitions.of_feed(one.feed, cluster))
        mapping = RollupMapping.of_text(_MEMBERS.dump_json(asset).decode())
        yield dg.AssetDep(names.asset_key(cluster, one.feed.name), partition_mapping=mapping)


@lru_cache(maxsize=1024)
def _member(text: str) -> MemberAsset:
    return _MEMBERS.validate_json(text)


@lru_cache(maxsize=1024)
def _window(text: str) -> InputWindow:
    return _ADAPTER.validate_json(text)


def _related(
    timeline: Timeline, keys: Iterable[str], related: Callable[[datetime], Iterable[datetime]]
) -> Iterator[str]:
    instants = (instant for key in keys if (instant := instant_of_key(key)) is not None)
    found = {other for instant in instants for other in related(instant) if timeline.contains(other)}
    return (key_of(timeline, instant) for instant in sorted(found))


def mapping_for(
    declared: Input, timezone: str, downstream: WorkloadPartitions, upstream: FeedAsset
) -> dg.PartitionMapping:
    """Returns the mapping from partitions of a workload's assets to those of an input's asset.

    ``latest`` and ``future`` depend on availability: any instance may be read, as Dagster's AllPartitionMapping says;
    from an instance to ``latest``: any from there to the nominal time.
    """
    window = widest(declared)
    if window is None:
        return dg.AllPartitionMapping()
    offsets = _offsets(window, downstream, upstream)
    if offsets is not None:
        return _builtin(*offsets)
    return InputWindowMapping.of(InputWindow(window, timezone, downstream, upstream))


def self_mapping(mapping: dg.PartitionMapping, downstream: WorkloadPartitions) -> dg.PartitionMapping | None:
    """Returns the mapping of an asset that is made from earlier instances of itself; None: Dagster has none.

    Dagster lets an asset depend on itself by its own mapping of time windows only. Where that is not exact, the
    previous instance stands for all earlier ones, which gives the same order.
    """
    if isinstance(mapping, dg.TimeWindowPartitionMapping) and mapping.start_offset < 0 and mapping.end_offset < 0:
        return mapping
    return (
        _builtin(-1, -1) if isinstance(partitions_of(downstream.timeline), dg.TimeWindowPartitionsDefinition) else None
    )


def _offsets(declared: Input, downstream: WorkloadPartitions, upstream: FeedAsset) -> tuple[int, int] | None:
    """Offsets for the built-in mapping, in steps of the downstream partitions; None where it would not be exact."""
    if upstream.rewriter is not None:
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


def _starts_windows(feed: Timeline, nominal: Timeline) -> bool:
    """Whether every step of ``nominal`` is a step of the feed: Dagster counts a partly covered window as read."""
    if feed.instance(feed.index_at_or_before(nominal.start)) != nominal.start:
        return False
    if feed.frequency.is_absolute and nominal.frequency.is_absolute:
        return not nominal.frequency.length % feed.frequency.length
    return feed.frequency.length <= nominal.frequency.length


def _lag(downstream: WorkloadPartitions) -> int | None:
    """Steps from the nominal time to its partition; None where the two grids are out of phase."""
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
