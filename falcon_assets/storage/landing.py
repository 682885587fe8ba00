"""Instances that landed from outside, or changed since: found by listing folders, read one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.snapshots import instances_to_record, refresh_time
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.snapshots import snapshot_listing
from falcon_assets.storage.kinds.storage_kind import StorageKind


class Collected(NamedTuple):
    """A complete instance as it was found."""

    instance: datetime
    """Its nominal time."""
    path: str
    """Where it lies, below the cluster's root."""
    version: DataVersion
    """What it holds."""
    signature: str
    """Its listing when it was read: while that stays the same, the version stays as well."""
    modified: datetime | None
    """The newest modification time of its files; None where the store tells none."""


def collect(
    kind: StorageKind,
    feed: Feed,
    windows: Sequence[tuple[datetime, datetime]],
    known: Mapping[datetime, str | None],
    cut_off_from: datetime | None,
    incomplete: Callable[[datetime], None] = lambda instance: None,
) -> Iterator[Collected]:
    """The complete instances of ``feed`` that are new or whose files changed, oldest first, read as they are asked for.

    Lists the parent folders that exist, each once. Beyond that, an instance that is missing or known from before the
    cut-off costs nothing; a known one within it costs its listing; a new one a request for its flag, and where that is
    there, its content. What changes or goes while it is read is left for the next time, and so is what has links out
    of the root.

    Args:
        kind: Where the feed lies.
        feed: The feed.
        windows: Spans of nominal times, both ends included, in which to look (:func:`planning.watch.watch_windows`).
        known: The signatures of the instances that are recorded already; None where one is known but not its signature,
            so that it is read once more.
        cut_off_from: Known instances from this nominal time on may still change; None: no known instance is checked.
        incomplete: Told the instances that are listed, are not known, and cannot be recorded as they are.

    Raises:
        StorageError: the feed is a table there or the store cannot be read. Where permission to read one instance is
            missing, the others come first.
        ExpressionError: the path template names an unknown variable.
        UnknownEntityError: the feed is not on the store's cluster.
    """
    with driver_explained(kind.store.cluster.name, "look for instances"):
        found = (
            one
            for one in kind.instances(feed, windows)
            if one[0] not in known or (cut_off_from is not None and one[0] >= cut_off_from)
        )
        yield from read(kind, feed, found, known, incomplete)


def collect_snapshot(
    kind: StorageKind,
    feed: Feed,
    windows: Sequence[tuple[datetime, datetime]],
    known: Mapping[datetime, str | None],
    clock: Clock,
    now: datetime,
) -> Iterator[Collected]:
    """The instances that the present data of ``feed`` is to be recorded for, oldest first.

    Lists its path once; its content is read where there is something to record.

    Args:
        kind: Where the feed lies.
        feed: The feed.
        windows: See :func:`instances_to_record`, as ``known``.
        known: See there.
        clock: The falcon clock.
        now: The time on it: what says that it was written later was refreshed now.

    Raises:
        StorageError: as :func:`refreshed_at`.
        ExpressionError: the path template names an unknown variable.
        UnknownEntityError: the feed is not on the store's cluster.
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
) -> Iterator[Collected]:
    """Those of the instances at these paths that are complete, and new or changed; arguments as of :func:`collect`.

    Raises:
        StorageError: the store cannot be read. Where permission to read one instance is missing, the others come first.
    """
    refused: StorageError | None = None
    with driver_explained(kind.store.cluster.name, "look for instances"):
        for instance, path in kind.asked_together(found):
            try:
                collected = _read(kind, feed, instance, path, known.get(instance))
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


def _read(kind: StorageKind, feed: Feed, instance: datetime, path: str, seen: str | None) -> Collected | None:
    """The instance with its version; None where it is not complete, did not change, or changed meanwhile."""
    flag = feed.availability_flag
    if seen is None and not kind.is_available(feed, path):
        return None
    before = kind.listing(path, flag)
    if seen is not None and (before.signature == seen or not kind.is_available(feed, path)):
        return None
    version = kind.version(path, flag)
    # The flag before the listing: a writer that sets it in between has finished, and the listing shows its files.
    if not kind.is_available(feed, path) or kind.listing(path, flag) != before:
        return None
    return Collected(instance, path, version, before.signature, before.modified)
