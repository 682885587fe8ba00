"""What an instance may read and write, and which feeds lie where."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from operator import or_
from typing import NamedTuple, TypeAlias

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.captured import Captured, ColumnRead, DataRead, DataWrite, WrittenColumn
from falcon_assets.planning.version_columns import DIRECT, Hows, OutputColumn, OutputColumns, Source, with_hows


class FoundInstance(NamedTuple):
    """An instance of a feed that lies somewhere."""

    feed: str
    instance: datetime
    cluster: str = ""
    """Where it lies; empty: on the cluster of the process."""

    def __str__(self) -> str:
        """It in words."""
        return f"{self.feed} {format_instant(self.instance)}{self.cluster and f' on {self.cluster}'}"


Find: TypeAlias = Callable[[str], FoundInstance | None]
"""The instance of a feed that a place belongs to; None: to none."""

_LOCAL = re.compile(r"file:/+")
_SCHEMES = re.compile(r"s3[an]://")
_HDFS_PORT = re.compile(r"^(hdfs://[^/]+):8020(?:/|$)")
"""What Hadoop takes where no port is said."""


@dataclass(frozen=True)
class DeclaredInput:
    """An input as Spark reads it.

    Attributes:
        feed: Its feed.
        urls: Where its instances are; none: it has none, and is optional.
    """

    feed: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class DeclaredData:
    """What an instance may read and write.

    Attributes:
        inputs: By name.
        outputs: By name, the folder in staging.
        scratch: Folders in which it may do what it likes: staging and working locations.
    """

    inputs: Mapping[str, DeclaredInput]
    outputs: Mapping[str, str]
    scratch: Sequence[str]


def is_in(place: str, folders: Sequence[str]) -> bool:
    """Whether a place is one of some folders, or in one."""
    normal = normal_place(place)
    return any(normal == one or normal.startswith(f"{one}/") for one in map(normal_place, folders))


def normal_place(place: str) -> str:
    """A path or URL in one spelling: Spark and fsspec have several for the same."""
    named = _SCHEMES.sub("s3://", _LOCAL.sub("/", place, count=1), count=1)
    return _HDFS_PORT.sub(r"\1/", named, count=1).rstrip("/") or "/"


@dataclass(frozen=True)
class _Origin:
    """What something was made from, each in some way (empty: not said), and whether more may have gone in."""

    sources: frozenset[tuple[Source, str]] = frozenset()
    is_opaque: bool = False

    def __or__(self, other: _Origin) -> _Origin:
        return _Origin(self.sources | other.sources, self.is_opaque or other.is_opaque)

    @property
    def by_source(self) -> tuple[tuple[Source, ...], Hows]:
        """The sources in their order, and the ways of each."""
        found: dict[Source, list[str]] = {}
        for source, how in sorted(self.sources):
            found.setdefault(source, []).extend([how] if how else [])
        return tuple(found), tuple(map(tuple, found.values()))


@dataclass(frozen=True)
class Origins:
    """Knows what was captured of an instance.

    Attributes:
        captured: It.
        declared: What its process says.
        find: Knows the places of feeds.
    """

    captured: Captured
    declared: DeclaredData
    find: Find

    def columns(self, url: str) -> OutputColumns | None:
        """The columns of all that was written into a folder, which looks the same; None: they are not known."""
        writes = self._written(url)
        if not writes:
            return None
        first: dict[str, WrittenColumn] = {}
        for one in (column for write in writes for column in write.columns):
            first.setdefault(one.name.lower(), one)
        each = []
        for one in first.values():
            origin = _all(self._column(write, one.name) for write in writes)
            inputs, how = origin.by_source
            each.append(OutputColumn(one.name, one.type, inputs, origin.is_opaque, how))
        rows = _all(self._rows(write) for write in writes)
        decided, how = rows.by_source
        return OutputColumns(tuple(each), decided, rows.is_opaque, how)

    def _written(self, url: str) -> list[DataWrite]:
        return [one for one in self.captured.writes if one.columns and one.path and is_in(one.path, [url])]

    def _column(self, write: DataWrite, name: str, passed: frozenset[DataWrite] = frozenset()) -> _Origin:
        for one in write.columns:
            if one.name.lower() == name.lower():
                made = _all(self._origin(*read, passed | {write}) for read in with_hows(one.inputs, one.how))
                return made | _Origin(is_opaque=one.is_opaque)
        return _Origin()

    def _rows(self, write: DataWrite, passed: frozenset[DataWrite] = frozenset()) -> _Origin:
        """What decides the rows of a write, and those of what it was made from on the way."""
        passed |= {write}
        before = {one for roots in write.roots for root in roots for one in self._made_here(root)} - passed
        decided = _all(self._origin(*read, passed) for read in with_hows(write.rows_from, write.rows_how))
        on_the_way = _all(self._rows(one, passed) for one in before)
        return decided | on_the_way | _Origin(is_opaque=write.are_rows_opaque)

    def _origin(self, read: ColumnRead, hows: Sequence[str], passed: frozenset[DataWrite]) -> _Origin:
        roots, column = read
        found = _all(self._at(root, column, passed) for root in roots)
        ways = hows or ("",)
        return replace(found, sources=frozenset((one, _through(way, to)) for one, way in found.sources for to in ways))

    def _at(self, root: str, column: str, passed: frozenset[DataWrite]) -> _Origin:
        made = [one for one in self._made_here(root) if one not in passed]
        origin = _all(self._column(one, column, passed) for one in made)
        scratch = [*self.declared.outputs.values(), *self.declared.scratch]
        if not is_in(root, scratch):
            return origin | _Origin(frozenset(((name, column), DIRECT[0]) for name in self._names(root)))
        # What an earlier instance has left there nobody knows.
        is_all = any(not one.is_append for one in made)
        left = frozenset() if made else frozenset({((normal_place(root), column), DIRECT[0])})
        return origin | _Origin(left, is_opaque=not is_all)

    def _made_here(self, root: str) -> list[DataWrite]:
        """What the instance itself has written where it reads."""
        writes = (one for one in self.captured.writes if one.path)
        return [one for one in writes if is_in(root, [one.path or ""]) or is_in(one.path or "", [root])]

    def _names(self, root: str) -> Iterator[str]:
        """The feeds that are read there, or the place."""
        read = [one for one in self.captured.reads if one.is_complete and root in one.roots]
        paths = {path for one in read for path in one.paths if is_in(path, [root])}
        yield from {self._name(path, root) for path in paths or {root}}

    def _name(self, path: str, root: str) -> str:
        for one in self.declared.inputs.values():
            if is_in(path, one.urls):
                return one.feed
        found = self.find(normal_place(path))
        return found.feed if found else normal_place(root)


def _through(way: str, to: str) -> str:
    """The way of what went one way, and then another."""
    if not way or not to:
        return ""
    if to not in DIRECT or way not in DIRECT:
        return to if to not in DIRECT else way
    return max(way, to, key=DIRECT.index)


def _all(origins: Iterable[_Origin]) -> _Origin:
    return reduce(or_, origins, _Origin())


FeedInstance: TypeAlias = tuple[str, datetime]
"""Feed, instance."""
_SHOWN = 5
_RECORDED = 100
_REST = "... and "


@dataclass(frozen=True)
class Usage:
    """What an instance read and wrote.

    Attributes:
        problem: Why nothing of it is sure; empty: it is.
        unknown: In words, what it did of which nobody knows where.
        undeclared: Instances of feeds that it read, and that are none of its inputs.
        places: Other places that it read.
        written: Places that it wrote, besides its outputs.
        not_read: Its inputs that it did not read.
        columns: By output, where that is known.
    """

    problem: str = ""
    unknown: tuple[str, ...] = ()
    undeclared: tuple[FoundInstance, ...] = ()
    places: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()
    columns: Mapping[str, OutputColumns] = field(default_factory=dict)

    @property
    def capture(self) -> str:
        """How much of it is known, in words."""
        if self.problem:
            return f"none: {self.problem}"
        return f"partly: {'; '.join(_some(list(self.unknown)))}" if self.unknown else "complete"

    @property
    def breaches(self) -> list[str]:
        """What it did that its process does not declare, in words."""
        found = [f"reads {one}, which is no input" for one in self.undeclared]
        found += [f"reads {place}, which is of no feed" for place in self.places]
        return found + [f"writes {place}, which is no output" for place in self.written]

    @property
    def warnings(self) -> list[str]:
        """The same, and what it did not do that its process declares; some of each, and how many more there are."""
        unread = [f"does not read its input {name}" for name in self.not_read]
        return [*_some(self.breaches), *_some(unread)]

    @property
    def recorded_places(self) -> tuple[str, ...]:
        """The places for the graph; of very many the first, and how many more there are."""
        return tuple(_some(list(self.places), _RECORDED))

    @property
    def recorded_writes(self) -> tuple[str, ...]:
        """Likewise of those that it wrote."""
        return tuple(_some(list(self.written), _RECORDED))


def usage(captured: Captured, declared: DeclaredData, find: Find) -> Usage:
    """Holds what was captured against what is declared.

    Args:
        captured: What the listener says.
        declared: What the process says.
        find: Knows the places of feeds.
    """
    own = [*declared.outputs.values(), *declared.scratch]
    may_read = [*own, *(url for one in declared.inputs.values() for url in one.urls)]
    foreign = [place for place in _places(captured.reads) if not is_in(place, may_read)]
    found = {place: find(place) for place in foreign}
    written = [one.path or one.source or "" for one in captured.writes]
    missing = [name for name, url in declared.outputs.items() if not any(is_in(one, [url]) for one in written)]
    problem = captured.problem or (f"nobody saw how output {missing[0]} was written" if missing else "")
    is_known = not problem and not captured.unknown
    origins = Origins(captured, declared, find)
    return Usage(
        problem,
        captured.unknown,
        tuple(sorted({one for one in found.values() if one is not None})),
        tuple(sorted(place for place, one in found.items() if one is None)),
        tuple(sorted({normal_place(one) for one in written if not is_in(one, own)})),
        tuple(name for name, one in declared.inputs.items() if is_known and _is_unread(one, captured.reads)),
        {name: columns for name, url in declared.outputs.items() if (columns := origins.columns(url))},
    )


def _places(reads: Sequence[DataRead]) -> Iterator[str]:
    """What was read, each once: files' folders where all are known, else what was to be read."""
    places = (place for one in _known(reads) for place in (one.paths if one.is_complete else one.roots))
    return iter(dict.fromkeys(map(normal_place, places)))


def _known(reads: Sequence[DataRead]) -> list[DataRead]:
    """They without those of which only the roots are known, and of others of the same roots more."""
    known = {one.roots for one in reads if one.is_complete}
    return [one for one in reads if one.is_complete or one.roots not in known]


def _is_unread(one: DeclaredInput, reads: Sequence[DataRead]) -> bool:
    above = {root for read in _known(reads) if not read.is_complete for root in read.roots}
    read_there = any(
        is_in(place, one.urls) for place in (*_places(reads), *(root for read in reads for root in read.roots))
    )
    return bool(one.urls) and not read_there and not any(is_in(url, list(above)) for url in one.urls)


def is_rest(said: str) -> bool:
    """Whether it says how many more there are, and is none of them."""
    return said.startswith(_REST)


def _some(said: list[str], count: int = _SHOWN) -> list[str]:
    more = len(said) - count
    return said if more <= 0 else [*said[:count], f"{_REST}{more} more like that"]
