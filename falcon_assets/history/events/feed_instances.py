"""Instances of feeds: they are available, were replaced by another version, or retention took them away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from falcon_assets.history.events import record as keys
from falcon_assets.history.events.columns import columns_metadata
from falcon_assets.history.events.inputs import Changes, Consumption, Inputs
from falcon_assets.history.events.record import Data, Record, Size, Text, Time, VersionNumber, Words
from falcon_assets.model.instant import Instant
from falcon_assets.planning.version_columns import OutputColumns


@dataclass(frozen=True)
class KeptVersion:
    """A version that was replaced and is kept, and where it lies."""

    version: Text
    path: Text


@dataclass(frozen=True)
class FeedInstanceAvailable(Record):
    """A feed instance landed or was published.

    Attributes:
        version: What is there.
        at: When that was seen, on the falcon clock.
        bytes: Its size, and so on; None: nobody counted.
        signature: Of the listing in which a collector saw it.
        looked_before: The last time at which a collector found that it was not there yet; None: it was seen as it came.
        modified_at: The newest modification time of its files.
        pushed: The partition whose push it answers.
        push_event: The event of that push.
        process: The process that published it; None: it came from outside.
        nominal: The nominal time of that process instance.
        inputs: What it was made from.
        late: The changed inputs for which it was made again.
        path: Where it lies.
        definition: The version of the definition that it was made with; None: nobody made it, or nobody knows.
        source_versions: Of a copy, by cluster, what all its sources had come to.
        kept_versions: The versions that are kept beside it; None: its feed keeps none.
        undeclared: What it was made from besides, and its process does not declare.
        undeclared_places: Where it was made from what is of no feed: folders, files and tables, as Spark names them.
        undeclared_writes: What the run that made it wrote besides, and its process does not declare.
        capture: How much of all that is known, as in :class:`.DataCaptured`; None: not recorded.
        capture_warnings: In words, how it differs from what the process declares.
        restored_by: Who had it restored from a version that was kept; None: it was made.
        columns: What it holds, and what that was made from; none: nobody knows.
        made_by: The user of the operating system whose run made it.
        environment: With which versions of Python and of packages that was.
    """

    key = keys.INSTANCE.alias

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    version: Annotated[Text, keys.VERSION]
    at: Annotated[Time, keys.AT]
    bytes: Annotated[Size, keys.BYTES] = None
    records: Size = None
    files: Annotated[Size, keys.FILES] = None
    signature: Text | None = None
    looked_before: Time | None = None
    modified_at: Time | None = None
    pushed: Annotated[Text | None, keys.PUSHED] = None
    push_event: Annotated[int | None, keys.PUSH_EVENT] = None
    process: Annotated[Text | None, keys.PROCESS] = None
    nominal: Annotated[Instant | None, keys.NOMINAL] = None
    inputs: Annotated[Inputs | None, keys.INPUTS] = None
    late: Annotated[Changes, keys.LATE] = ()
    path: Text | None = None
    definition: VersionNumber = None
    source_versions: Mapping[Text, Text | None] | None = None
    kept_versions: tuple[KeptVersion, ...] | None = None
    restored_by: Text | None = None
    made_by: Text | None = None
    environment: Data = None
    columns: Annotated[OutputColumns | None, keys.COLUMNS] = None
    undeclared: Annotated[tuple[Consumption, ...], keys.UNDECLARED] = ()
    undeclared_places: Annotated[tuple[Text, ...], keys.UNDECLARED_PLACES] = ()
    undeclared_writes: tuple[Text, ...] = ()
    capture: Words | None = None
    capture_warnings: tuple[Words, ...] = ()

    def metadata(self) -> dict[str, Any]:
        """See :class:`Record`; with what Dagster knows how to show."""
        import dagster as dg  # noqa: PLC0415 - takes seconds, and commands that only read need none of it

        path = {"path": dg.MetadataValue.path(self.path)} if self.path else {}
        rows = {} if self.records is None else {"dagster/row_count": self.records}
        return super().metadata() | path | rows | columns_metadata(self.columns, self.cluster)


@dataclass(frozen=True)
class FeedInstanceEvicted(Record):
    """Retention took a feed instance away.

    Attributes:
        evicted: What was done with it: ``delete`` or ``archive``.
        at: When, on the falcon clock.
        bytes: How much it was, statistics and metadata included.
        files: How many files, likewise.
        reason: Why it went.
        archived_to: Where it was archived.
        archive_cluster: On which cluster, where that is another.
    """

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
    """A feed instance that was available is not there any more, and not by us: it was taken back, to be rewritten say.

    Attributes:
        withdrawn: Who found that it is not there: the process or replication that was to read it.
        at: When, on the falcon clock.
    """

    key = "withdrawn"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    withdrawn: Text
    at: Annotated[Time, keys.AT]


@dataclass(frozen=True)
class FeedVersionEvicted(Record):
    """A version of a feed instance that was replaced is kept no longer.

    Attributes:
        version_evicted: The version.
        at: When, on the falcon clock.
        reason: Why it went.
    """

    key = "version_evicted"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    version_evicted: Text
    at: Annotated[Time, keys.AT]
    reason: Annotated[Words, keys.REASON] = ""


@dataclass(frozen=True)
class InstancesKept(Record):
    """Instances that have outlived their limit and stay nevertheless.

    Attributes:
        kept: How many.
        kept_instances: Of the first of them, why.
        at: When, on the falcon clock.
    """

    key = "kept"

    kept: int
    kept_instances: tuple[KeptInstance, ...]
    at: Annotated[Time, keys.AT]


@dataclass(frozen=True)
class KeptInstance:
    """An instance that stays, and why; for programs, too."""

    instance: Instant
    reason: Words
    reason_data: Data = None


@dataclass(frozen=True)
class InstancesLanded(Record):
    """What a collector found of a feed at once.

    Attributes:
        landed: How many instances.
        first: The oldest of them.
        last: The newest.
        at: When, on the falcon clock.
    """

    key = "landed"

    landed: int
    first: Instant
    last: Instant
    at: Annotated[Time, keys.AT]


@dataclass(frozen=True)
class PartitionPushed(Record):
    """Somebody else says that a partition is there: nothing is known about it until a collector has checked.

    Attributes:
        partition: What they said, the key of an instance or not; empty: nothing.
    """

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    partition: Annotated[Text, keys.PARTITION]


@dataclass(frozen=True)
class PushRefused(Record):
    """A collector has checked what was pushed, and there is no instance to record.

    Attributes:
        partition: As it was pushed.
        push_event: The latest push that this answers.
        reason: Why there is none.
    """

    key = keys.PUSHED.alias

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    partition: Annotated[Text, keys.PUSHED]
    push_event: Annotated[int, keys.PUSH_EVENT]
    reason: Annotated[Words, keys.REASON] = ""
