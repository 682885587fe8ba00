"""The folders that hold instances of a feed, one after the other, for a pass that looks through all of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.model.path_template import PathTemplate
from falcon_assets.planning.instance_paths import FolderSpans, InstancePaths
from falcon_assets.planning.old_folders import FolderPass
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained, is_about_path
from falcon_assets.storage.instances.template_walk import Names, TemplateWalk, listed_names

AFTER_ALL = "\uffff"
"""Stands for the end of a folder that holds folders: it sorts after every name."""


class Visit(NamedTuple):
    folder: str | None
    """The present folder, or end of one, below the root; None: the beginning of one that holds folders."""
    found: tuple[tuple[datetime, str], ...] = ()
    """Its instances, complete or not, with their paths; none if it was not listed."""
    problem: StorageError | None = None
    asked: bool = True


def visits(store: ClusterStore, feed: Feed, now: datetime, folder_pass: FolderPass) -> Iterator[Visit]:
    paths = InstancePaths(feed, store.cluster)
    if paths.timeline.start > now:
        return
    yield from _Pass(store, paths, now, folder_pass).visits()


class _Pass:
    def __init__(self, store: ClusterStore, paths: InstancePaths, now: datetime, folder_pass: FolderPass) -> None:
        self._store, self._paths, self._now, self._pass = store, paths, now, folder_pass
        self._walk = TemplateWalk(paths.template, self._names, self._may_hold)
        last = paths.timeline.last
        end = last if last is not None and last < now else now
        self._spans = FolderSpans.of(paths, [(paths.timeline.start, end)])

    def visits(self) -> Iterator[Visit]:
        for folder in self._walk.folders():
            if folder.holds_instances:
                yield from self._instances(folder.path, folder.changed)
            elif folder.is_left or folder.problem:
                yield Visit(f"{folder.path}/{AFTER_ALL}", problem=folder.problem, asked=not folder.is_left)
            else:
                yield Visit(None)

    def _instances(self, folder: str, changed: datetime | None) -> Iterator[Visit]:
        if self._pass.is_through(folder):
            return
        try:
            if changed is None and self._store.files.tells_changes and not self._pass.lists_all:
                changed = self._changed(folder)
                yield Visit(None)
            if not self._pass.must_list(changed):
                yield Visit(folder, asked=False)
                return
            found = [(self._paths.instance(path), path) for path in self._walk.paths_in(folder)]
        except StorageError as error:
            if not is_about_path(error):
                raise
            yield Visit(folder, problem=error)
            return
        yield Visit(folder, tuple((instance, path) for instance, path in found if instance and instance <= self._now))

    def _names(self, folder: str, depth: int) -> Names:
        step = self._walk.steps[depth]
        if "${" not in step:
            return {step: None}
        is_above = any("${" in below for below in self._walk.steps[depth + 1 :])
        return listed_names(self._store, folder, times=is_above and self._store.files.tells_changes)

    def _may_hold(self, level: PathTemplate, path: str) -> bool:
        return not self._pass.is_through(path) and self._spans.may_hold(level, path)

    def _changed(self, folder: str) -> datetime | None:
        with explained(self._store.cluster.name, f"look at {folder}"):
            try:
                return self._store.files.changed_at(self._store.fs.info(self._store.path(folder)))
            except FileNotFoundError:
                return datetime.min.replace(tzinfo=UTC)  # nothing to list
