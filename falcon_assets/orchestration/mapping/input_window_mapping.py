"""Our partition mapping, for the input windows that none of Dagster's says exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache

import dagster as dg
from pydantic import TypeAdapter

from falcon_assets.orchestration.dagster_internals.definitions import (
    DynamicPartitionsStore,
    PartitionsSubset,
    UpstreamPartitionsResult,
    partition_loading_context,
    whitelist_for_serdes,
)
from falcon_assets.orchestration.mapping.partitions import instant_of_key, key_of
from falcon_assets.planning.instances.instances_reading import InputWindow
from falcon_assets.planning.time.timeline import Timeline

_ADAPTER = TypeAdapter(InputWindow)


@whitelist_for_serdes
class InputWindowMapping(dg.SpecificPartitionsPartitionMapping):
    """An :class:`InputWindow`, resolved instance by instance.

    Dagster hands only its built-in mappings to its daemon and its UI, and puts the default in the place of any other;
    the default refuses to work across time zones. A subclass of a built-in one is handed over as it is, so this is
    one, and keeps the window, as JSON, in the only field that it inherits. The daemon and the UI know the class
    because ``dagster.yaml`` makes them load :mod:`falcon_assets.orchestration.platform.instance_storage`.
    """

    @classmethod
    def of(cls, window: InputWindow) -> InputWindowMapping:
        """The mapping of that window."""
        return cls([_ADAPTER.dump_json(window).decode()])

    @property
    def window(self) -> InputWindow:
        """The window that it maps."""
        return _window(self.partition_keys[0])

    @property
    def description(self) -> str:
        """Shown in the UI."""
        declared = self.window.declared
        return f"Feed instances from {declared.start} to {declared.end}."

    def get_upstream_mapped_partitions_result_for_partitions(
        self,
        downstream_partitions_subset: PartitionsSubset | None,
        downstream_partitions_def: dg.PartitionsDefinition | None,
        upstream_partitions_def: dg.PartitionsDefinition,
        current_time: datetime | None = None,
        dynamic_partitions_store: DynamicPartitionsStore | None = None,
    ) -> UpstreamPartitionsResult:
        """The partitions of the input's asset that the given partitions read."""
        window = self.window
        with partition_loading_context(current_time, dynamic_partitions_store):
            keys = downstream_partitions_subset.get_partition_keys() if downstream_partitions_subset else ()
            return UpstreamPartitionsResult(
                partitions_subset=_subset(upstream_partitions_def, window.upstream.partitions, keys, window.read_by),
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
        """The partitions that read one of the given partitions of the input's asset."""
        window = self.window
        with partition_loading_context(current_time, dynamic_partitions_store):
            keys = upstream_partitions_subset.get_partition_keys()
            return _subset(downstream_partitions_def, window.downstream.timeline, keys, window.readers_of)


@lru_cache(maxsize=1024)
def _window(text: str) -> InputWindow:
    return _ADAPTER.validate_json(text)


def _subset(
    definition: dg.PartitionsDefinition,
    timeline: Timeline,
    keys: Iterable[str],
    related: Callable[[datetime], Iterable[datetime]],
) -> PartitionsSubset:
    """The existing partitions of ``timeline`` that are ``related`` to one of ``keys``."""
    instants = (instant for key in keys if (instant := instant_of_key(key)) is not None)
    found = {other for instant in instants for other in related(instant) if timeline.contains(other)}
    return definition.subset_with_partition_keys([key_of(timeline, instant) for instant in sorted(found)])
