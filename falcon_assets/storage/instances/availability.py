"""Which instances are there, complete."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.planning.instances.folder_spans import FolderSpans
from falcon_assets.planning.instances.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained
from falcon_assets.storage.instances.template_walk import Names, TemplateWalk, listed_names

_NO_PLACE = (errno.ELOOP, errno.ENAMETOOLONG)
_ASKED_FOR = 16
"""So many instances are asked for before folders are listed: each takes as long as a folder."""


def is_available(store: ClusterStore, feed: Feed, path: str) -> bool:
    """Whether the instance of ``feed`` at ``path`` is complete.

    It is where its availability flag is a file in it; where the feed declares no flag, where the path exists.
    What a symbolic link puts outside the store's root is not available.

    Args:
        store: Where it lies.
        feed: Says what the flag is.
        path: The path of the instance, below the root.

    Raises:
        StorageError: the store refuses the look, so that nobody knows.
    """
    flag = feed.availability_flag
    try:
        place = store.path(path if flag is None else f"{path}/{flag}")
    except StorageError:
        return False
    # Not fs.exists(): it says of what may not be looked at that it is not there.
    with explained(store.cluster.name, f"look at {path}"):
        try:
            found = store.fs.info(place)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            if error.errno in _NO_PLACE:
                return False
            raise
    return flag is None or found["type"] == "file"


@dataclass(frozen=True)
class AvailableInstances:
    """The available instances of ``feed`` on ``cluster``, for whoever wants the next few of them.

    The nearest ones that may be there are asked for one by one; after that folders are listed, in spans that grow. So
    the next one is found soon where it is decades away, and nothing beyond it is looked at.

    Attributes:
        store: Where the feed lies.
        feed: The feed.
        cluster: The cluster of ``store``.
    """

    store: ClusterStore
    feed: Feed
    cluster: Cluster

    def backwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Those from ``first`` to ``last``, both included, newest first.

        Raises:
            StorageError: as :func:`listed_instances`; so the other errors.
        """
        return self._found(first, last, newest_first=True)

    def forwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """The same, oldest first."""
        return self._found(first, last, newest_first=False)

    def _found(self, first: datetime, last: datetime, *, newest_first: bool) -> Iterator[datetime]:
        paths = InstancePaths(self.feed, self.cluster)
        indexes = paths.timeline.indexes(first, last)[:: -1 if newest_first else 1]
        listed: Iterable[tuple[datetime, str]]
        for number, span in enumerate(_growing(indexes)):
            ends = sorted((paths.timeline.instance(span[0]), paths.timeline.instance(span[-1])))
            if number == 0:
                listed = ((one, paths.data(one)) for one in map(paths.timeline.instance, span))
            else:
                found = listed_instances(self.store, self.feed, self.cluster, [(ends[0], ends[1])])
                listed = sorted(found, reverse=newest_first)
            yield from (instance for instance, path in listed if is_available(self.store, self.feed, path))


def _growing(indexes: range) -> Iterator[range]:
    """Parts of a range, one after the other, each longer than all before it."""
    begin, length = 0, _ASKED_FOR
    while part := indexes[begin : begin + length]:
        yield part
        begin, length = begin + length, length * 4


def listed_instances(
    store: ClusterStore, feed: Feed, cluster: Cluster, spans: Sequence[tuple[datetime, datetime]]
) -> Iterator[tuple[datetime, str]]:
    """The instances of ``feed`` in ``spans`` whose folder or file is listed, complete or not, each with its path.

    In the order of their paths, so oldest first where the template has the coarsest variable first. Lists the folders
    of the path template that exist and can hold instances of those spans, each once, as the instances are asked for; so
    what is not there costs nothing. What does not match the template exactly is ignored. Looks at no flag.

    Args:
        store: Where the feed lies.
        feed: The feed.
        cluster: The cluster of ``store``.
        spans: Spans of nominal times, both ends included.

    Raises:
        StorageError: the feed is a table there, or a folder cannot be read.
        ExpressionError: the path template names an unknown variable.
        UnknownEntityError: the feed is not on ``cluster``.
    """
    if feed.table_on(cluster.name):
        raise StorageError(f"feed {feed.name!r} on cluster {cluster.name!r} is a table: it has no paths to list")
    paths = InstancePaths(feed, cluster)
    if not spans:
        return
    shown = FolderSpans.of(feed, spans)

    def names(folder: str, depth: int) -> Names:
        if "${" not in walk.steps[depth]:
            return {walk.steps[depth]: None}
        known = shown.folders(walk.levels[depth]) if depth + 1 < len(walk.steps) else None
        if known is None:
            return listed_names(store, folder)
        return {path[len(folder) + 1 :]: None for path in known if path.startswith(f"{folder}/")}

    walk = TemplateWalk(paths.template, names, shown.may_hold)
    for path in walk.paths():
        instance = paths.instance(path)
        if instance and any(first <= instance <= last for first, last in spans):
            yield instance, path
