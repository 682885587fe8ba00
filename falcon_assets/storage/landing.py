"""Instances that landed from outside, or changed since: found by listing folders, read one at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from falcon_assets.errors import StorageError
from falcon_assets.history.events.record import Record
from falcon_assets.model.feed import Feed
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.snapshots import instances_to_record, refresh_time
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.snapshots import snapshot_listing
from falcon_assets.storage.kinds.storage_kind import StorageKind


def _all(instance: datetime, path: str) -> bool:
    return True


class LandingGate(Protocol):
    """Decides which instances from outside are taken that lie there with their flags, in one pass of a collector."""

    def admits(self, kind: StorageKind, feed: Feed, instance: datetime, path: str) -> bool:
        """Whether an instance that is not recorded yet is taken."""

    def why_withheld(self, feed: Feed, instance: datetime) -> str:
        """Why an instance was not admitted in this pass; empty: it was, or was not asked about."""

    def records(self, kind: StorageKind, feed: Feed, instance: datetime, path: str) -> Sequence[Record]:
        """What is recorded beside the version of an instance that is taken, or has changed since."""

    def summary(self, feed: Feed, instances: Collection[datetime]) -> Sequence[Record]:
        """What is recorded of the feed once these instances have been."""

    def finish(self) -> Mapping[str, str]:
        """Called once, at the end of the pass. Feed -> why its instances could not be decided on."""


class Collected(NamedTuple):
    instance: datetime
    path: str
    version: DataVersion
    signature: str
    """Digest of its listing: while that stays the same, so does the version."""
    modified: datetime | None
    """The newest modification time of its files; None if the store keeps none."""


def collect(
    kind: StorageKind,
    feed: Feed,
    windows: Sequence[tuple[datetime, datetime]],
    known: Mapping[datetime, str | None],
    cut_off_from: datetime | None,
    incomplete: Callable[[datetime], None] = lambda instance: None,
    admits: Callable[[datetime, str], bool] = _all,
) -> Iterator[Collected]:
    """Returns the complete instances of ``feed`` that are new or have changed, oldest first, each read on demand.

    Lists each existing parent folder once. Beyond that, a missing instance, or a known one from before ``cut_off_from``
    (None: any), costs nothing; a later known one costs its listing; a new one a request for its flag and, if that is
    there, its content. An instance that changes or is deleted while it is read is left for the next call, as is one
    with links out of the root.

    ``windows`` are spans of nominal times, both ends included. ``known`` has signatures of recorded instances; one
    without is read again. ``incomplete`` receives new instances that cannot be recorded as they are; ``admits`` says by
    time and path which new ones, of those with their flag, can. If permission to read one instance is missing,
    StorageError is raised after the others; else as by :class:`.StorageKind`.
    """
    with driver_explained(kind.store.cluster.name, "look for instances"):
        found = (
            one
            for one in kind.instances(feed, windows)
            if one[0] not in known or (cut_off_from is not None and one[0] >= cut_off_from)
        )
        yield from read(kind, feed, found, known, incomplete, admits)


def collect_snapshot(
    kind: StorageKind,
    feed: Feed,
    windows: Sequence[tuple[datetime, datetime]],
    known: Mapping[datetime, str | None],
    clock: Clock,
    now: datetime,
) -> Iterator[Collected]:
    """Returns the instances that the present data of ``feed`` is to be recorded for, oldest first.

    Lists its path once; reads it if there is something to record. A refresh after ``now``, on the falcon clock, counts
    as one at that time.
    """
    paths = InstancePaths(feed, kind.store.cluster)
    path = paths.data(paths.timeline.start)
    with driver_explained(kind.store.cluster.name, f"look at {path}"):
        listing = snapshot_listing(kind, feed, path)
        if listing is None or listing.modified is None:
            return
        refreshed, signature = min(refresh_time(listing.modified, clock), now), listing.signature
        instances = instances_to_record(paths.timeline, windows, known, refreshed, signature)
        for one in read(kind, feed, [(instance, path) for instance in instances[:1]], {}, lambda instance: None):
            if one.signature == signature:  # else it is being refreshed: the next time
                yield from (one._replace(instance=instance) for instance in instances)


def read(
    kind: StorageKind,
    feed: Feed,
    found: Iterable[tuple[datetime, str]],
    known: Mapping[datetime, str | None],
    incomplete: Callable[[datetime], None],
    admits: Callable[[datetime, str], bool] = _all,
) -> Iterator[Collected]:
    """Returns the complete, new or changed ones of the instances at these paths; arguments as of :func:`collect`."""
    refused: StorageError | None = None
    with driver_explained(kind.store.cluster.name, "look for instances"):
        for instance, path in kind.asked_together(found):
            try:
                collected = _read(kind, feed, instance, path, known.get(instance), admits)
            except StorageError as error:
                if isinstance(error.__cause__, PermissionError):
                    refused = refused or error
                elif error.__cause__ is not None:
                    raise
                # Without a cause it is not the store that failed: the instance went, keeps changing or has bad links.
                collected = None
            if collected:
                yield collected
            elif instance not in known:
                incomplete(instance)
    if refused:
        raise refused


def _read(
    kind: StorageKind,
    feed: Feed,
    instance: datetime,
    path: str,
    seen: str | None,
    admits: Callable[[datetime, str], bool],
) -> Collected | None:
    flag = feed.availability_flag
    if seen is None and not (kind.is_available(feed, path) and admits(instance, path)):
        return None
    before = kind.listing(path, flag)
    if seen is not None and (before.signature == seen or not kind.is_available(feed, path)):
        return None
    version = kind.version(path, flag)
    # The flag before the listing: a writer that sets it in between has finished, and the listing shows its files.
    if not kind.is_available(feed, path) or kind.listing(path, flag) != before:
        return None
    return Collected(instance, path, version, before.signature, before.modified)
