"""Which instances are there, complete."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import takewhile

from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.path_template import TIME_VARIABLES, PathTemplate
from falcon_assets.planning.paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.explain import explained

_SPAN = {
    "YEAR": timedelta(days=366),
    "MONTH": timedelta(days=31),
    "DAY": timedelta(days=1),
    "HOUR": timedelta(hours=1),
    "MINUTE": timedelta(minutes=1),
}
_CLOCKS_APART = timedelta(days=2)
"""More than any zone's wall clock is away from UTC, a day that a zone skipped included."""


def is_available(store: ClusterStore, feed: Feed, path: str) -> bool:
    """Whether the instance of ``feed`` at ``path`` is complete.

    It is where its availability flag is a file in it; where the feed declares no flag, where the path exists.
    What a symbolic link puts outside the store's root is not available.

    Args:
        store: Where it lies.
        feed: Says what the flag is.
        path: The path of the instance, below the root.
    """
    try:
        if feed.availability_flag is None:
            return bool(store.fs.exists(store.path(path)))
        return bool(store.fs.isfile(store.path(f"{path}/{feed.availability_flag}")))
    except StorageError:
        return False


def available_instances(
    store: ClusterStore, feed: Feed, cluster: Cluster, first: datetime, last: datetime
) -> list[datetime]:
    """The available instances of ``feed`` from ``first`` to ``last``, both included, oldest first.

    Lists the folders of the path template that exist and can hold instances of that span, so it costs one listing per
    parent folder, and one look at the flag per instance that is there; nothing for those that are not.
    What does not match the template exactly is ignored.

    Raises:
        StorageError: the feed is a table there, or a folder cannot be read.
        ExpressionError: the path template names an unknown variable.
        UnknownEntityError: the feed is not on ``cluster``.
    """
    if feed.table_on(cluster.name):
        raise StorageError(f"feed {feed.name!r} on cluster {cluster.name!r} is a table: it has no paths to list")
    paths = InstancePaths(feed, cluster)
    found = (
        instance
        for path in _existing(store, paths.template, _wall(first), _wall(last))
        if (instance := paths.instance(path)) and first <= instance <= last and is_available(store, feed, path)
    )
    return sorted(found)


def _existing(store: ClusterStore, template: PathTemplate, first: datetime, last: datetime) -> Iterator[str]:
    """The paths that match ``template`` and may lie between those UTC times, by descending folder by folder."""
    steps = template.text.strip("/").split("/")
    levels = [PathTemplate("/" + "/".join(steps[: depth + 1])) for depth in range(len(steps))]

    def below(folder: str, depth: int) -> Iterator[str]:
        if depth == len(steps):
            yield folder
        elif "${" not in steps[depth]:
            yield from below(f"{folder}/{steps[depth]}", depth + 1)
        else:
            for name in _names(store, folder):
                if _may_hold(levels[depth], f"{folder}/{name}", first, last):
                    yield from below(f"{folder}/{name}", depth + 1)

    return below("", 0)


def _names(store: ClusterStore, folder: str) -> list[str]:
    try:
        path = store.path(folder)
    except StorageError:
        return []  # a link out of the root: nothing in there is the feed's
    with explained(store.cluster.name, f"list {folder}"):
        try:
            listed = store.fs.ls(path, detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
    return [str(name).rstrip("/").rpartition("/")[2] for name in listed if str(name).rstrip("/") != path]


def _may_hold(level: PathTemplate, path: str, first: datetime, last: datetime) -> bool:
    """Whether ``path`` matches, and the times that it leaves open may reach into ``first`` to ``last``."""
    if "YEAR" not in level.variables:
        return True  # ${MONTH} above ${YEAR}: nothing can be said yet
    earliest = level.match(path, {})
    if earliest is None:
        return False
    # 2013 in ${YEAR}/${DAY} leaves the month open: only the variables without a gap narrow the time down.
    finest = list(takewhile(level.variables.__contains__, TIME_VARIABLES))[-1]
    return earliest - last <= _CLOCKS_APART and first - earliest < _SPAN[finest] + _CLOCKS_APART


def _wall(moment: datetime) -> datetime:
    return moment.astimezone(timezone.utc).replace(tzinfo=None)
