"""Existence of partitions by the falcon clock: Dagster uses the real time, and has no public way to change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Self

import dagster as dg

# Its functions look up the present time here; nothing public sets another.
from dagster._core.definitions.partitions import context
from dagster._core.definitions.partitions.context import partition_loading_context  # by which time there are partitions

# What a custom mapping returns: PartitionMapping is public, the types around it are not.
from dagster._core.definitions.partitions.mapping.partition_mapping import UpstreamPartitionsResult
from dagster._core.definitions.partitions.subset import PartitionsSubset  # what a mapping takes and returns
from dagster._core.instance import DynamicPartitionsStore  # what a mapping is asked with

# What they look up by default, for whoever goes by the real time again.
from dagster._time import get_current_datetime

# The daemon and the UI get a mapping as text; Dagster reads back only the classes that are on its list.
from dagster_shared.serdes import whitelist_for_serdes


def partitions_exist_by(now: Callable[[], datetime] | None) -> None:
    """Sets the present time by which this process decides which partitions exist; None: the real one.

    Nothing else uses it: runs, ticks and events keep the real time. Where Dagster names a moment itself, as a backfill
    does, that moment counts.
    """
    vars(context)["get_current_datetime"] = now or get_current_datetime  # what its functions look up when called


known_to_daemon_and_ui = whitelist_for_serdes
"""Decorates a mapping that a process can read once it has imported the class."""


class KeyMapping(dg.SpecificPartitionsPartitionMapping):
    """Maps partition keys to partition keys, by a text that its subclass understands.

    Dagster passes only its built-in mappings to its daemon and its UI, and replaces any other by the default, which
    refuses to work across time zones. Subclasses of a built-in one are passed unchanged: so this is one, and keeps
    the text in the only field that it inherits.
    """

    @classmethod
    def of_text(cls, text: str) -> Self:
        return cls([text])

    @property
    def text(self) -> str:
        return self.partition_keys[0]

    def upstream_keys(self, keys: Iterable[str]) -> Iterable[str]:
        raise NotImplementedError

    def downstream_keys(self, keys: Iterable[str]) -> Iterable[str]:
        raise NotImplementedError

    def get_upstream_mapped_partitions_result_for_partitions(
        self,
        downstream_partitions_subset: PartitionsSubset | None,
        downstream_partitions_def: dg.PartitionsDefinition | None,
        upstream_partitions_def: dg.PartitionsDefinition,
        current_time: datetime | None = None,
        dynamic_partitions_store: DynamicPartitionsStore | None = None,
    ) -> UpstreamPartitionsResult:
        with partition_loading_context(current_time, dynamic_partitions_store):
            keys = downstream_partitions_subset.get_partition_keys() if downstream_partitions_subset else ()
            return UpstreamPartitionsResult(
                partitions_subset=upstream_partitions_def.subset_with_partition_keys(self.upstream_keys(keys)),
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
        with partition_loading_context(current_time, dynamic_partitions_store):
            keys = upstream_partitions_subset.get_partition_keys()
            return downstream_partitions_def.subset_with_partition_keys(self.downstream_keys(keys))
