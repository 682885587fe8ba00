"""Snapshot feeds in a store: one path, whose data stands for every instance up to the time of its last refresh."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from falcon_assets.errors import BeingWrittenError, StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.snapshots import not_refreshed, refresh_time
from falcon_assets.storage.instances.instance_files import Listing
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.output_target import output_target


def snapshot_listing(kind: StorageKind, feed: Feed, path: str) -> Listing | None:
    """Returns the listing of the data at ``path``; None: it is not complete, or just being replaced."""
    if not kind.is_available(feed, path):
        return None
    try:
        return kind.listing(path, feed.availability_flag)
    except StorageError as error:
        if error.__cause__ is not None:
            raise
        return None  # not the store failed: it went


def refreshed_at(kind: StorageKind, feed: Feed, path: str, clock: Clock) -> datetime | None:
    """Returns the time of the last refresh, on the falcon clock; None: not complete, or unknown."""
    listing = snapshot_listing(kind, feed, path)
    return refresh_time(listing.modified, clock) if listing and listing.modified else None


def is_there(kind: StorageKind, feed: Feed, instance: datetime, path: str, clock: Clock | None) -> bool:
    """Whether it is available: a snapshot if refreshed at or after that time; without ``clock``, at any time."""
    if not feed.snapshot or clock is None:
        return kind.is_available(feed, path)
    refreshed = refreshed_at(kind, feed, path, clock)
    return refreshed is not None and refreshed >= instance


def is_there_repaired(kind: StorageKind, feed: Feed, instance: datetime, path: str, clock: Clock | None) -> bool:
    """As :func:`is_there`, after putting back what a killed publication left out of its place."""
    if is_there(kind, feed, instance, path, clock):
        return True
    with suppress(BeingWrittenError):  # it is in its place in a moment
        kind.repair(f"{feed.name} {format_instant(instance)}", output_target(feed, instance, path))
    return is_there(kind, feed, instance, path, clock)


def why_not_there(
    kind: StorageKind, feed: Feed, instance: datetime, path: str, clock: Clock | None
) -> tuple[bool, str]:
    if not feed.snapshot or clock is None:
        return kind.why_unavailable(feed, path)
    refreshed = refreshed_at(kind, feed, path, clock)
    if refreshed is not None:
        return True, not_refreshed(refreshed, instance)
    if kind.is_available(feed, path):
        return True, f"when {kind.store.shown(path)} was refreshed is unknown: it has no files with a time"
    return kind.why_unavailable(feed, path)
