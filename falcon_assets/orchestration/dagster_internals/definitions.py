"""The private names of Dagster behind assets, partitions and events."""

from __future__ import annotations

# A custom partition mapping takes and returns these; PartitionMapping itself is public, its types are not.
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.definitions.partitions.mapping.partition_mapping import UpstreamPartitionsResult
from dagster._core.definitions.partitions.subset import PartitionsSubset

# Many events in one statement: the batch that an event log storage takes is made of them.
from dagster._core.events import AssetObservationData

# A custom partition mapping is handed this, too.
from dagster._core.instance import DynamicPartitionsStore

# A mapping of ours reaches the daemon and the UI as text; Dagster reads back only the classes that are on its list.
# And the ledger reads the event log as a whole, which no public method does: it asks for one asset or run at a time.
from dagster_shared.serdes import deserialize_value, whitelist_for_serdes

__all__ = [
    "AssetObservationData",
    "DynamicPartitionsStore",
    "PartitionsSubset",
    "UpstreamPartitionsResult",
    "deserialize_value",
    "partition_loading_context",
    "whitelist_for_serdes",
]
