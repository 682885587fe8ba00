"""Rows of the ledger and their keys, as facts change them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

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
    version: str
    landed_at: datetime
    seen_at: datetime
    event_id: int
    bytes: int | None = None
    records: int | None = None
    files: int | None = None
    signature: str | None = None
    previous_version: str | None = None
    changes: int = 0
    run_id: str | None = None
    version_event: int = 0
    late: bool = False
    state: FeedState = FeedState.AVAILABLE
    evicted_at: datetime | None = None
    evicted_by: str | None = None
    evicted_bytes: int | None = None
    looked_before: datetime | None = None


@dataclass(frozen=True)
class Consumed:
    """A row of ``falcon.consumed`` without the key of its process instance and the derived column ``stale``."""

    input: str
    feed: str
    instance: datetime
    version: str | None
    read_event: int
    input_cluster: str
    too_late: str | None = None


@dataclass(frozen=True)
class First:
    started: datetime | None = None
    succeeded: datetime | None = None
