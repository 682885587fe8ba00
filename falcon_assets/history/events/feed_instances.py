"""Records about instances of feeds: availability, replacement by another version, eviction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from falcon_assets.history.events import record as keys
from falcon_assets.history.events.columns import columns_metadata
from falcon_assets.history.events.data_version import PublishedVersion
from falcon_assets.history.events.inputs import Changes, Consumption, Inputs
from falcon_assets.history.events.record import Data, Record, Size, Text, Time, Words
from falcon_assets.model.instant import Instant
from falcon_assets.planning.version_columns import OutputColumns


@dataclass(frozen=True)
class KeptVersion:
    version: Text
    path: Text


@dataclass(frozen=True)
class FeedInstanceAvailable(PublishedVersion, Record):
    """A feed instance landed or was published.

    Attributes:
        signature: Of the listing in which a collector saw it.
        looked_before: When a collector last found that it was missing; None: it was seen when it arrived.
        pushed: The partition whose push it answers.
        source_versions: Of a replication: the versions of all its sources, by cluster.
        kept_versions: Earlier versions kept beside it; None: the feed keeps none.
        undeclared: Feed instances it was made from that its process does not declare.
        same_rows_as: The version that it was made of by compaction: who has read that has read this.
    """

    key = keys.INSTANCE.alias

    seen_at: Annotated[Time, keys.AT]
    signature: Text | None = None
    looked_before: Time | None = None
    modified_at: Time | None = None
    pushed: Annotated[Text | None, keys.PUSHED] = None
    push_event: Annotated[int | None, keys.PUSH_EVENT] = None
    inputs: Annotated[Inputs | None, keys.INPUTS] = None
    late: Annotated[Changes, keys.LATE] = ()
    source_versions: Mapping[Text, Text | None] | None = None
    kept_versions: tuple[KeptVersion, ...] | None = None
    same_rows_as: Text | None = None
    columns: Annotated[OutputColumns | None, keys.COLUMNS] = None
    undeclared: Annotated[tuple[Consumption, ...], keys.UNDECLARED] = ()

    def metadata(self) -> dict[str, Any]:
        import dagster as dg  # noqa: PLC0415 - takes seconds, and commands that only read need none of it

        path = {"path": dg.MetadataValue.path(self.path)} if self.path else {}
        rows = {} if self.records is None else {"dagster/row_count": self.records}
        return super().metadata() | path | rows | columns_metadata(self.columns, self.cluster)


@dataclass(frozen=True)
class RowsKept(Record):
    """A compaction is about to publish ``compacted``; recorded before, so that nobody takes it for late data."""

    key = "compacted"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    compacted: Text
    same_rows_as: Text
    at: Annotated[Time, keys.AT]


@dataclass(frozen=True)
class FeedInstanceEvicted(Record):
    """Retention deleted or archived a feed instance; ``bytes`` and ``files`` include statistics and metadata."""

    key = "evicted"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    evicted: Text
    at: Annotated[Time, keys.AT]
    bytes: Annotated[Size, keys.BYTES] = None
    files: Annotated[Size, keys.FILES] = None
    reason: Annotated[Words, keys.REASON] = ""
    archived_to: Text | None = None
    archive_cluster: Text | None = None


@dataclass(frozen=True)
class FeedInstanceWithdrawn(Record):
    """An available instance is missing, found by a process or replication that was to read it; it was not evicted."""

    key = "withdrawn"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    withdrawn: Text
    at: Annotated[Time, keys.AT]


@dataclass(frozen=True)
class FeedVersionEvicted(Record):
    key = "version_evicted"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    version_evicted: Text
    at: Annotated[Time, keys.AT]
    reason: Annotated[Words, keys.REASON] = ""
    bytes: Annotated[Size, keys.BYTES] = None


@dataclass(frozen=True)
class FeedArchiveExpired(Record):
    """Retention removed an instance from its archive; ``version``: which one it was, None: nobody had seen it."""

    key = "archive_expired"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    archive_expired: Text
    at: Annotated[Time, keys.AT]
    bytes: Annotated[Size, keys.BYTES] = None
    reason: Annotated[Words, keys.REASON] = ""
    archive_cluster: Text | None = None
    version: Text | None = None


@dataclass(frozen=True)
class InstancesKept(Record):
    key = "kept"

    kept: int
    kept_instances: tuple[KeptInstance, ...]
    at: Annotated[Time, keys.AT]


@dataclass(frozen=True)
class KeptInstance:
    instance: Instant
    reason: Words
    reason_data: Data = None


@dataclass(frozen=True)
class InstancesLanded(Record):
    key = "landed"

    landed: int
    first: Instant
    last: Instant
    at: Annotated[Time, keys.AT]


@dataclass(frozen=True)
class PartitionPushed(Record):
    """An announcement from outside, unverified; ``partition`` may be any text, empty: none was named."""

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    partition: Annotated[Text, keys.PARTITION]


@dataclass(frozen=True)
class PushRefused(Record):
    """A collector found no instance for a push; ``push_event`` is the latest push that this answers."""

    key = keys.PUSHED.alias

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    partition: Annotated[Text, keys.PUSHED]
    push_event: Annotated[int, keys.PUSH_EVENT]
    reason: Annotated[Words, keys.REASON] = ""
