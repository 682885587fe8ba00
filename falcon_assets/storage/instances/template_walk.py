"""The walk over a location template that everything shares that looks for instances: folder by folder, in order."""

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
"""What may be in a folder, with the time at which each was changed, where that is known."""


class Folder(NamedTuple):
    """A folder that a walk has come to."""

    path: str
    """Below the root."""
    holds_instances: bool = False
    """Whether the last variable of the template is named in it; then it was not listed yet."""
    changed: datetime | None = None
    """When it was changed, where the folder above says so."""
    is_left: bool = False
    """Whether all in it was walked through."""
    problem: StorageError | None = None
    """Why it could not be listed."""


@dataclass(frozen=True)
class TemplateWalk:
    """A walk through the folders that match a template, level by level.

    Attributes:
        template: Of the locations.
        names: What may be in a folder at a step of the template: listed, or known without.
        may_hold: Whether to walk on from a folder, by the template of its level.
    """

    template: PathTemplate
    names: Callable[[str, int], Names]
    may_hold: Callable[[PathTemplate, str], bool]

    def folders(self) -> Iterator[Folder]:
        """Goes to the folders that hold instances, by way of those above, each of which is told when it was listed.

        Raises:
            StorageError: the store fails; what it refuses of one folder is its problem instead.
        """
        return self._below(self.template.fixed_prefix({}), None)

    def paths_in(self, folder: str) -> Iterator[str]:
        """The paths in a folder that holds instances, whether they match or not.

        Raises:
            StorageError: it cannot be listed.
        """
        depth = folder.count("/")
        if depth == len(self.steps):
            yield folder
            return
        paths = [f"{folder}/{name}" for name in sorted(self.names(folder, depth))]
        yield from paths if depth + 1 == len(self.steps) else chain.from_iterable(map(self.paths_in, paths))

    def paths(self) -> Iterator[str]:
        """All paths in all folders that match the template.

        Raises:
            StorageError: a folder cannot be listed.
        """
        for folder in self.folders():
            if folder.problem:
                raise folder.problem
            if folder.holds_instances:
                yield from self.paths_in(folder.path)

    @cached_property
    def steps(self) -> list[str]:
        """The template's, one for each level of folders."""
        return self.template.text.strip("/").split("/")

    @cached_property
    def levels(self) -> list[PathTemplate]:
        """The template down to each step."""
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
    """What a folder holds, links followed; nothing where it is not there, or a link out of the root.

    Args:
        store: Where it is.
        folder: Its path below the root.
        times: Whether to tell when folders were changed, where the store does.

    Raises:
        StorageError: it cannot be listed.
    """
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
