"""The walk over a location template, for all who look for instances: folder by folder, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.model.path_template import PathTemplate
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained, is_about_path

Names: TypeAlias = Mapping[str, datetime | None]
"""Entries of a folder, with the time of their last change, if known."""


class Folder(NamedTuple):
    path: str
    holds_instances: bool = False
    """Whether the last variable of the template is named in it; it is not listed yet then."""
    changed: datetime | None = None
    is_left: bool = False
    problem: StorageError | None = None


@dataclass(frozen=True)
class TemplateWalk:
    """A walk level by level; ``names`` are entries of a folder at a step, ``may_hold`` decides whether to descend."""

    template: PathTemplate
    names: Callable[[str, int], Names]
    may_hold: Callable[[PathTemplate, str], bool]

    def folders(self) -> Iterator[Folder]:
        """Visits the folders that hold instances, and those above, each after it was listed."""
        return self._below(self.template.fixed_prefix({}), None)

    def paths_in(self, folder: str) -> Iterator[str]:
        """Returns the paths in a folder that holds instances, also those that do not match."""
        depth = folder.count("/")
        if depth == len(self.steps):
            yield folder
            return
        paths = [f"{folder}/{name}" for name in sorted(self.names(folder, depth))]
        yield from paths if depth + 1 == len(self.steps) else chain.from_iterable(map(self.paths_in, paths))

    def paths(self) -> Iterator[str]:
        for folder in self.folders():
            if folder.problem:
                raise folder.problem
            if folder.holds_instances:
                yield from self.paths_in(folder.path)

    @cached_property
    def steps(self) -> list[str]:
        return self.template.text.strip("/").split("/")

    @cached_property
    def levels(self) -> list[PathTemplate]:
        return [PathTemplate("/" + "/".join(self.steps[: depth + 1])) for depth in range(len(self.steps))]

    @cached_property
    def _last(self) -> int:
        return max((depth for depth, step in enumerate(self.steps) if "${" in step), default=0)

    def _below(self, folder: str, changed: datetime | None) -> Iterator[Folder]:
        depth = folder.count("/")
        if depth >= self._last:
            yield Folder(folder, True, changed)
            return
        try:
            names = self.names(folder, depth)
        except StorageError as error:
            if not is_about_path(error):
                raise
            yield Folder(folder, problem=error)
            return
        is_listed = "${" in self.steps[depth]
        if is_listed:
            yield Folder(folder)
        for name, when in sorted(names.items()):
            path = f"{folder}/{name}"
            if not is_listed or self.may_hold(self.levels[depth], path):
                yield from self._below(path, when)
        if is_listed:
            yield Folder(folder, is_left=True)


def listed_names(store: ClusterStore, folder: str, *, times: bool = False) -> Names:
    """Lists a folder, following links; empty if it is missing, or a link out of the root."""
    try:
        path = store.path(folder)
    except UnreachableError:
        raise
    except StorageError:
        return {}  # nothing in there is the feed's
    store.files.refresh()
    with explained(store.cluster.name, f"list {folder}"):
        try:
            listed: Iterable[Any] = store.fs.ls(path, detail=times)
        except (FileNotFoundError, NotADirectoryError):
            return {}
    entries = (entry if isinstance(entry, Mapping) else {"name": entry} for entry in listed)
    named = ((str(entry["name"]).rstrip("/"), entry) for entry in entries)
    changed_at = store.files.changed_at
    return {name.rpartition("/")[2]: changed_at(entry) if times else None for name, entry in named if name != path}
