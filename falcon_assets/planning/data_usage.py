"""Compares what an instance read and wrote with what its process declares, and derives the origins of columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from operator import or_
from typing import NamedTuple, TypeAlias

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.captured import Captured, ColumnRead, DataRead, DataWrite
from falcon_assets.planning.version_columns import DIRECT, Hows, OutputColumn, OutputColumns, Source, with_hows


class FoundInstance(NamedTuple):
    feed: str
    instance: datetime
    cluster: str = ""

    def __str__(self) -> str:
        return f"{self.feed} {format_instant(self.instance)}{self.cluster and f' on {self.cluster}'}"


Find: TypeAlias = Callable[[str], FoundInstance | None]
"""Returns the feed instance that a place belongs to; None: none."""

_LOCAL = re.compile(r"file:/+")
_SCHEMES = re.compile(r"s3[an]://")
_HDFS_PORT = re.compile(r"^(hdfs://[^/]+):8020(?:/|$)")


@dataclass(frozen=True)
class DeclaredInput:
    feed: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class DeclaredData:
    """Inputs by name; the staging folder of each output; staging and working locations, which are free for any use."""

    inputs: Mapping[str, DeclaredInput]
    outputs: Mapping[str, str]
    scratch: Sequence[str]


def is_in(place: str, folders: Sequence[str]) -> bool:
    normal = normal_place(place)
    return any(normal == one or normal.startswith(f"{one}/") for one in map(normal_place, folders))


def normal_place(place: str) -> str:
    """One spelling of a path or URL: Spark and fsspec have several for the same place."""
    named = _SCHEMES.sub("s3://", _LOCAL.sub("/", place, count=1), count=1)
    return _HDFS_PORT.sub(r"\1/", named, count=1).rstrip("/") or "/"


@dataclass(frozen=True)
class _Origin:
    """Sources of something, each with a way (empty: not recorded); opaque: there may be more."""

    sources: frozenset[tuple[Source, str]] = frozenset()
    is_opaque: bool = False

    def __or__(self, other: _Origin) -> _Origin:
        return _Origin(self.sources | other.sources, self.is_opaque or other.is_opaque)

    @property
    def by_source(self) -> tuple[tuple[Source, ...], Hows]:
        found: dict[Source, list[str]] = {}
        for source, how in sorted(self.sources):
            found.setdefault(source, []).extend([how] if how else [])
        return tuple(found), tuple(map(tuple, found.values()))


@dataclass(frozen=True)
class Origins:
    captured: Captured
    declared: DeclaredData
    find: Find

    def columns(self, url: str) -> OutputColumns | None:
        writes = self._written(url)
        if not writes:
            return None
        first: dict[str, OutputColumn[ColumnRead]] = {}
        for one in (column for write in writes for column in write.each):
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
        return [one for one in self.captured.writes if one.each and one.path and is_in(one.path, [url])]

    def _column(self, write: DataWrite, name: str, passed: frozenset[DataWrite] = frozenset()) -> _Origin:
        for one in write.each:
            if one.name.lower() == name.lower():
                made = _all(self._origin(*read, passed | {write}) for read in with_hows(one.inputs, one.how))
                return made | _Origin(is_opaque=one.is_opaque)
        return _Origin()

    def _rows(self, write: DataWrite, passed: frozenset[DataWrite] = frozenset()) -> _Origin:
        passed |= {write}
        before = {one for roots in write.roots for root in roots for one in self._made_here(root)} - passed
        decided = _all(self._origin(*read, passed) for read in with_hows(write.rows_from or (), write.rows_how))
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
        writes = (one for one in self.captured.writes if one.path)
        return [one for one in writes if is_in(root, [one.path or ""]) or is_in(one.path or "", [root])]

    def _names(self, root: str) -> Iterator[str]:
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
    if not way or not to:
        return ""
    if to not in DIRECT or way not in DIRECT:
        return to if to not in DIRECT else way
    return max(way, to, key=DIRECT.index)


def _all(origins: Iterable[_Origin]) -> _Origin:
    return reduce(or_, origins, _Origin())


FeedInstance: TypeAlias = tuple[str, datetime]
_SHOWN = 5
_RECORDED = 100
_REST = "... and "


@dataclass(frozen=True)
class Usage:
    """Findings about an instance.

    Attributes:
        problem: Why none of it is certain; empty: it is.
        unknown: Actions at unknown places, in words.
        undeclared: Feed instances that it read without declaring them.
        places: Read places that belong to no feed.
        written: Written places besides the outputs.
        columns: By output, where known.
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
        if self.problem:
            return f"none: {self.problem}"
        return f"partly: {'; '.join(_some(list(self.unknown)))}" if self.unknown else "complete"

    @property
    def breaches(self) -> list[str]:
        found = [f"reads {one}, which is no input" for one in self.undeclared]
        found += [f"reads {place}, which is of no feed" for place in self.places]
        return found + [f"writes {place}, which is no output" for place in self.written]

    @property
    def warnings(self) -> list[str]:
        unread = [f"does not read its input {name}" for name in self.not_read]
        return [*_some(self.breaches), *_some(unread)]

    @property
    def recorded_places(self) -> tuple[str, ...]:
        return tuple(_some(list(self.places), _RECORDED))

    @property
    def recorded_writes(self) -> tuple[str, ...]:
        return tuple(_some(list(self.written), _RECORDED))


def usage(captured: Captured, declared: DeclaredData, find: Find) -> Usage:
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
    places = (place for one in _known(reads) for place in (one.paths if one.is_complete else one.roots))
    return iter(dict.fromkeys(map(normal_place, places)))


def _known(reads: Sequence[DataRead]) -> list[DataRead]:
    known = {one.roots for one in reads if one.is_complete}
    return [one for one in reads if one.is_complete or one.roots not in known]


def _is_unread(one: DeclaredInput, reads: Sequence[DataRead]) -> bool:
    above = {root for read in _known(reads) if not read.is_complete for root in read.roots}
    read_there = any(
        is_in(place, one.urls) for place in (*_places(reads), *(root for read in reads for root in read.roots))
    )
    return bool(one.urls) and not read_there and not any(is_in(url, list(above)) for url in one.urls)


def is_rest(said: str) -> bool:
    return said.startswith(_REST)


def _some(said: list[str], count: int = _SHOWN) -> list[str]:
    more = len(said) - count
    return said if more <= 0 else [*said[:count], f"{_REST}{more} more like that"]


MovedInput: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The folders of an input of one instance, and those of another one, with all folders of its files."""


def seen_by(captured: Captured, inputs: Sequence[MovedInput], outputs: Mapping[str, str]) -> Captured:
    """What is known of another instance that was computed as this one: it read its inputs, and wrote its outputs.

    ``outputs`` are the places of the other one by those of this one.
    """
    places = {normal_place(before): now for before, now in outputs.items()}
    was = [set(map(normal_place, urls)) for urls, _, _ in inputs]

    def roots(found: tuple[str, ...]) -> tuple[str, ...]:
        own = set(map(normal_place, found))
        now = [url for before, (_, urls, _) in zip(was, inputs, strict=True) if before == own for url in urls]
        return tuple(dict.fromkeys(now)) if own in was else found

    def read(one: DataRead) -> DataRead:
        own = set(map(normal_place, one.roots))
        if own not in was:
            return one
        paths = [url for before, (_, _, files) in zip(was, inputs, strict=True) if before == own for url in files]
        return DataRead(roots(one.roots), tuple(dict.fromkeys(paths)) if one.is_complete else (), one.is_complete)

    def columns(found: tuple[ColumnRead, ...]) -> tuple[ColumnRead, ...]:
        return tuple((roots(places), column) for places, column in found)

    def write(one: DataWrite) -> DataWrite:
        return replace(
            one,
            each=tuple(replace(column, inputs=columns(column.inputs)) for column in one.each),
            rows_from=None if one.rows_from is None else columns(one.rows_from),
            path=one.path and places.get(normal_place(one.path), one.path),
            roots=tuple(map(roots, one.roots)),
        )

    return replace(captured, reads=tuple(map(read, captured.reads)), writes=tuple(map(write, captured.writes)))


def within(captured: Captured, inputs: Sequence[str], outputs: Sequence[str]) -> Captured:
    """Only what it read of these inputs, and wrote of these outputs."""
    reads = tuple(one for one in captured.reads if _is_of(one, inputs))
    return replace(captured, reads=reads, writes=tuple(one for one in captured.writes if _is_to(one, outputs)))


def beside(captured: Captured, inputs: Sequence[str], outputs: Sequence[str]) -> Captured:
    """As :func:`within`, without it: all the rest."""
    reads = tuple(one for one in captured.reads if not _is_of(one, inputs))
    return replace(captured, reads=reads, writes=tuple(one for one in captured.writes if not _is_to(one, outputs)))


def _is_of(read: DataRead, inputs: Sequence[str]) -> bool:
    return bool(read.roots) and all(is_in(root, inputs) for root in read.roots)


def _is_to(write: DataWrite, outputs: Sequence[str]) -> bool:
    return write.path is not None and is_in(write.path, outputs)
