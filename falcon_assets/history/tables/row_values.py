"""Rows of the ledger and their keys, as facts change them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, TypeAlias

from falcon_assets.planning.instance_record import FeedState

FeedKey: TypeAlias = tuple[str, str, datetime]
"""Cluster, feed, instance."""
PushKey: TypeAlias = tuple[str, str, str]
"""Cluster, feed, partition."""
ProcessKey: TypeAlias = tuple[str, str, datetime]
"""Process, cluster, nominal time."""
TotalKey: TypeAlias = tuple[str, str, str, str]
"""Kind of total, entity, cluster, label."""
COPIED_BYTES, EVICTED_BYTES = "copied_bytes", "evicted_bytes"


@dataclass(frozen=True)
class FeedInstanceRow:
    """A row of ``falcon.feed_instances`` without its key."""

    version: Annotated[str, "empty: none was seen before it was evicted"]
    landed_at: Annotated[datetime, "when the first version was seen, on the falcon clock"]
    seen_at: Annotated[datetime, "when the present version was seen, on the falcon clock"]
    event_id: Annotated[int, "of Dagster's latest event about it"]
    bytes: int | None = None
    records: int | None = None
    files: int | None = None
    signature: Annotated[str | None, "of the listing, where it landed from outside"] = None
    previous_version: Annotated[str | None, "the version before the present one"] = None
    changes: Annotated[int, "how often the version changed after the first one"] = 0
    run_id: Annotated[str | None, "the run that published it; null: it landed from outside"] = None
    version_event: Annotated[int, "of Dagster's event that brought the present version"] = 0
    late: Annotated[bool, "whether a late rerun published the present version"] = False
    state: Annotated[FeedState, "AVAILABLE or EVICTED"] = FeedState.AVAILABLE
    evicted_at: Annotated[datetime | None, "EVICTED: when, on the falcon clock"] = None
    evicted_by: Annotated[str | None, "EVICTED: the run that did it"] = None
    evicted_bytes: Annotated[int | None, "EVICTED: how much it was, statistics and metadata included"] = None
    same_rows: Annotated[str | None, "other versions with the same rows, before and after compaction"] = None
    looked_before: Annotated[datetime | None, "the look before seen_at, where it landed: it came between the two"] = (
        None
    )


@dataclass(frozen=True)
class Consumed:
    """A row of ``falcon.consumed`` without the key of its process instance and the derived column ``stale``."""

    input: str
    feed: str
    instance: datetime
    version: Annotated[str | None, "null: it was not there (an optional input)"]
    read_event: Annotated[int, "of Dagster's event after which it was read; 0: unknown"]
    input_cluster: Annotated[str, "where it was read: replications read another cluster"]
    too_late: Annotated[str | None, "a later version that was said to have come too late"] = None


@dataclass(frozen=True)
class First:
    started: datetime | None = None
    succeeded: datetime | None = None
