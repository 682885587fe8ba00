"""Which instances are there, complete."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import takewhile

from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.path_template import TIME_VARIABLES, PathTemplate
from falcon_assets.planning.instances.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained

_NO_PLACE = (errno.ELOOP, errno.ENAMETOOLONG)
_SPAN = {
    "YEAR": timedelta(days=366),
    "MONTH": timedelta(days=31),
    "DAY": timedelta(days=1),
    "HOUR": timedelta(hours=1),
    "MINUTE": timedelta(minutes=1),
}
CLOCKS_APART = timedelta(days=2)
"""More than any zone's wall clock is away from UTC, a day that a zone skipped included. Paths of minutes and hours show
UTC: there no folder beside those of the span is listed."""

_DAY = timedelta(days=1)
_FEW_DAYS, _FEW_SPANS = timedelta(days=7), 7
_ASKED_FOR = 16
"""So many instances are asked for before folders are listed: each takes as long as a folder."""
_STEPS = (_FEW_DAYS + 2 * CLOCKS_APART) // _DAY + 1
"""So many days reach from the beginning of a span to its end at least."""


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
            StorageError: as :func:`available_instances`; so the other errors.
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
    listed = listed_instances(store, feed, cluster, [(first, last)])
    return sorted(instance for instance, path in listed if is_available(store, feed, path))


def listed_instances(
    store: ClusterStore, feed: Feed, cluster: Cluster, spans: Sequence[tuple[datetime, datetime]]
) -> Iterator[tuple[datetime, str]]:
    """The instances of ``feed`` in ``spans`` whose folder or file is listed, complete or not, each with its path.

    In the order of their paths, so oldest first where the template has the coarsest variable first. Lists as
    :func:`available_instances`, each folder once for all spans, as the instances are asked for; looks at no flag.

    Args:
        store: Where the feed lies.
        feed: The feed.
        cluster: The cluster of ``store``.
        spans: Spans of nominal times, both ends included.

    Raises:
        StorageError: as :func:`available_instances`; so the other errors.
    """
    if feed.table_on(cluster.name):
        raise StorageError(f"feed {feed.name!r} on cluster {cluster.name!r} is a table: it has no paths to list")
    paths = InstancePaths(feed, cluster)
    if not spans:
        return
    apart = timedelta(0) if feed.frequency.is_absolute else CLOCKS_APART
    for path in _existing(store, paths.template, [(utc_wall(first), utc_wall(last)) for first, last in spans], apart):
        instance = paths.instance(path)
        if instance and any(first <= instance <= last for first, last in spans):
            yield instance, path


_Spans = Sequence[tuple[datetime, datetime]]


def _existing(store: ClusterStore, template: PathTemplate, spans: _Spans, apart: timedelta) -> Iterator[str]:
    """The paths that match ``template`` and may lie in those spans of UTC times, by descending folder by folder.

    The clock that the paths show is at most ``apart`` from UTC.
    """
    steps = template.text.strip("/").split("/")
    levels = [PathTemplate("/" + "/".join(steps[: depth + 1])) for depth in range(len(steps))]

    def below(folder: str, depth: int) -> Iterator[str]:
        if depth == len(steps):
            yield folder
        elif "${" not in steps[depth]:
            yield from below(f"{folder}/{steps[depth]}", depth + 1)
        else:
            named = _named(levels[depth], spans, apart) if depth + 1 < len(steps) else None
            paths = [f"{folder}/{name}" for name in _names(store, folder)] if named is None else named
            for path in sorted(paths):
                if path.startswith(f"{folder}/") and may_hold(levels[depth], path, spans, apart):
                    yield from below(path, depth + 1)

    return below("", 0)


def _named(level: PathTemplate, spans: _Spans, apart: timedelta) -> set[str] | None:
    """The folders of that level for ``spans``, there or not, where these are a few days; None where they are not.

    Then the folder above, which has an entry for each day of history perhaps, need not be listed.
    """
    if any(last - first > _FEW_DAYS for first, last in spans) or len(spans) > _FEW_SPANS:
        return None
    if set(level.variables) not in ({"YEAR"}, {"YEAR", "MONTH"}, {"YEAR", "MONTH", "DAY"}):
        return None
    try:
        days = ((first - apart + n * _DAY, last + apart) for first, last in spans for n in range(_STEPS))
        return {level.render(min(day, end), {}) for day, end in days}
    except OverflowError:
        return None  # at the ends of the calendar


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


def may_hold(level: PathTemplate, path: str, spans: _Spans, apart: timedelta) -> bool:
    """Whether ``path`` matches, and the times that it leaves open may reach into one of ``spans``."""
    if "YEAR" not in level.variables:
        return True  # ${MONTH} above ${YEAR}: nothing can be said yet
    earliest = level.match(path, {})
    if earliest is None:
        return False
    # 2013 in ${YEAR}/${DAY} leaves the month open: only the variables without a gap narrow the time down.
    finest = list(takewhile(level.variables.__contains__, TIME_VARIABLES))[-1]
    return any(earliest - last <= apart and first - earliest < _SPAN[finest] + apart for first, last in spans)


def utc_wall(moment: datetime) -> datetime:
    """The moment in UTC, naive."""
    return moment.astimezone(timezone.utc).replace(tzinfo=None)
