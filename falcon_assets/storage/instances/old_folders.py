"""The folders that hold instances of a feed, one after the other, for a pass that looks through all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.path_template import PathTemplate
from falcon_assets.planning.instances.instance_paths import InstancePaths
from falcon_assets.planning.landing.old_folders import Patrol
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained, is_about_path
from falcon_assets.storage.instances.availability import CLOCKS_APART, may_hold, utc_wall
from falcon_assets.storage.instances.instance_files import modified_at

_TELL_CHANGES = {"file", "local", "hdfs", "arrow_hdfs", "webhdfs", "webHDFS", "sftp", "ssh", "smb"}
"""File systems (fsspec's names) whose folders have a modification time that says when an entry came or went."""


AFTER_ALL = "\uffff"
"""Stands for the end of a folder that holds folders: no name comes after it."""


class Visit(NamedTuple):
    """What a pass did, and where it is."""

    folder: str | None
    """The folder, or end of one, that it has come to, below the root; None: the beginning of one that holds folders."""
    found: tuple[tuple[datetime, str], ...] = ()
    """The instances in it, by their paths, complete or not; none where it was not listed."""
    problem: StorageError | None = None
    """Why it could not be listed."""
    asked: bool = True
    """Whether it took a request to the store."""


def tells_changes(store: ClusterStore) -> bool:
    """Whether the folders of the store tell when an entry came or went."""
    protocols = store.fs.protocol
    return not _TELL_CHANGES.isdisjoint([protocols] if isinstance(protocols, str) else protocols)


def visits(store: ClusterStore, feed: Feed, cluster: Cluster, now: datetime, patrol: Patrol) -> Iterator[Visit]:
    """Goes through the folders of ``feed`` in the order of their paths, from where the pass is.

    Yields after each request to the store, and for each folder that needs none because it did not change. A folder that
    holds instances is one of those in which the last time variable of the path is named.

    Args:
        store: Where the feed lies.
        feed: The feed, which has paths there.
        cluster: The cluster of ``store``.
        now: Instances after it do not exist yet; on the falcon clock.
        patrol: The present pass, as far as it is.

    Raises:
        StorageError: the store fails; what it refuses of one folder is a problem of that visit instead.
        ExpressionError: the path template names an unknown variable.
    """
    paths = InstancePaths(feed, cluster)
    if paths.timeline.start > now:
        return
    yield from _Walk(store, paths, now, patrol).below("", 0, None)


@dataclass(frozen=True)
class _Walk:
    store: ClusterStore
    paths: InstancePaths
    now: datetime
    patrol: Patrol
    steps: list[str] = field(init=False)
    levels: list[PathTemplate] = field(init=False)
    last: int = field(init=False)
    """The step with the last variable: the folder above is listed for instances."""
    tells: bool = field(init=False)

    def __post_init__(self) -> None:
        steps = self.paths.template.text.strip("/").split("/")
        object.__setattr__(self, "steps", steps)
        object.__setattr__(
            self, "levels", [PathTemplate("/" + "/".join(steps[: depth + 1])) for depth in range(len(steps))]
        )
        object.__setattr__(self, "last", max(depth for depth, step in enumerate(steps) if "${" in step))
        object.__setattr__(self, "tells", tells_changes(self.store))

    def below(self, folder: str, depth: int, changed: datetime | None) -> Iterator[Visit]:
        if depth == self.last:
            yield from self._instances(folder, changed)
        elif "${" not in self.steps[depth]:
            yield from self.below(f"{folder}/{self.steps[depth]}", depth + 1, None)
        else:
            try:
                entries = self._entries(folder)
            except StorageError as error:
                if not is_about_path(error):
                    raise
                yield Visit(f"{folder}/{AFTER_ALL}", problem=error)
                return
            yield Visit(None)
            for name, when in sorted(entries.items()):
                path = f"{folder}/{name}"
                if not self.patrol.is_through(path) and self._may_hold(depth, path):
                    yield from self.below(path, depth + 1, when)
            yield Visit(f"{folder}/{AFTER_ALL}", asked=False)

    def _instances(self, folder: str, changed: datetime | None) -> Iterator[Visit]:
        if self.patrol.is_through(folder):
            return
        try:
            if changed is None and self.tells and not self.patrol.lists_all:
                changed = self._changed(folder)
                yield Visit(None)
            if not self.patrol.must_list(changed):
                yield Visit(folder, asked=False)
                return
            names = self._entries(folder, detail=False)
        except StorageError as error:
            if not is_about_path(error):
                raise
            yield Visit(folder, problem=error)
            return
        rest = "".join(f"/{step}" for step in self.steps[self.last + 1 :])
        paths = [f"{folder}/{name}{rest}" for name in sorted(names)]
        found = ((self.paths.instance(path), path) for path in paths)
        yield Visit(folder, tuple((instance, path) for instance, path in found if instance and instance <= self.now))

    def _may_hold(self, depth: int, path: str) -> bool:
        apart = timedelta(0) if self.paths.feed.frequency.is_absolute else CLOCKS_APART
        timeline = self.paths.timeline
        end = timeline.last if timeline.last is not None and timeline.last < self.now else self.now
        return may_hold(self.levels[depth], path, [(utc_wall(timeline.start), utc_wall(end))], apart)

    def _entries(self, folder: str, *, detail: bool = True) -> Mapping[str, datetime | None]:
        """The names in a folder, with the time at which each was changed where the store tells that of folders."""
        try:
            path = self.store.path(folder)
        except StorageError:
            return {}  # a link out of the root: nothing in there is the feed's
        with explained(self.store.cluster.name, f"list {folder}"):
            try:
                listed = self.store.fs.ls(path, detail=detail and self.tells)
            except (FileNotFoundError, NotADirectoryError):
                return {}
        entries = [one if isinstance(one, Mapping) else {"name": one} for one in listed]
        named = ((str(one["name"]).rstrip("/"), one) for one in entries)
        return {name.rpartition("/")[2]: self._time(one) for name, one in named if name != path}

    def _changed(self, folder: str) -> datetime | None:
        with explained(self.store.cluster.name, f"look at {folder}"):
            try:
                return self._time(self.store.fs.info(self.store.path(folder)))
            except FileNotFoundError:
                return datetime.min.replace(tzinfo=timezone.utc)  # nothing to list

    def _time(self, entry: Mapping[str, Any]) -> datetime | None:
        if not self.tells or (entry.get("islink") and entry.get("type") != "directory"):
            return None  # a listing has the time of the link, not that of the folder behind it
        times = [modified_at(entry)]
        if self.store.is_local and isinstance(entry.get("created"), float):
            # There it is the time of the last change of any kind, which nobody can set back.
            times.append(datetime.fromtimestamp(entry["created"], timezone.utc))
        return max(filter(None, times), default=None)
