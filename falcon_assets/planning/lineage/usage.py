"""What a process instance really read and wrote, held against what its process declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeAlias

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.lineage.captured import Captured, ColumnRead, DataRead
from falcon_assets.planning.lineage.columns import OutputColumn, OutputColumns, Source

FeedInstance: TypeAlias = tuple[str, datetime]
"""Feed, instance."""


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
_SHOWN = 5
_RECORDED = 100


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


@dataclass(frozen=True)
class Usage:
    """What an instance read and wrote.

    Attributes:
        problem: Why this may not be all; empty: it is.
        undeclared: Instances of feeds that it read, and that are none of its inputs.
        places: Other places that it read.
        written: Places that it wrote, besides its outputs.
        not_read: Its inputs that it did not read.
        columns: By output, where that is known.
    """

    problem: str = ""
    undeclared: tuple[FoundInstance, ...] = ()
    places: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()
    columns: Mapping[str, OutputColumns] = field(default_factory=dict)

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


def usage(captured: Captured, declared: DeclaredData, find: Find) -> Usage:
    """Holds what was captured against what is declared.

    Args:
        captured: What the listener says.
        declared: What the process says.
        find: Knows the places of feeds.
    """
    own = [*declared.outputs.values(), *declared.scratch]
    may_read = [*own, *(url for one in declared.inputs.values() for url in one.urls)]
    foreign = [place for place in _places(captured.reads) if not _is_in(place, may_read)]
    found = {place: find(place) for place in foreign}
    written = [one.path or one.source or "" for one in captured.writes]
    missing = [name for name, url in declared.outputs.items() if not any(_is_in(one, [url]) for one in written)]
    problem = captured.problem or (f"nobody saw how output {missing[0]} was written" if missing else "")
    is_known = not problem and not captured.jobs
    return Usage(
        problem,
        tuple(sorted({one for one in found.values() if one is not None})),
        tuple(sorted(place for place, one in found.items() if one is None)),
        tuple(sorted({normal_place(one) for one in written if not _is_in(one, own)})),
        tuple(name for name, one in declared.inputs.items() if is_known and _is_unread(one, captured.reads)),
        {
            name: columns
            for name, url in declared.outputs.items()
            if (columns := _columns(captured, declared, url, find))
        },
    )


def _places(reads: Sequence[DataRead]) -> Iterator[str]:
    """What was read, each once: files' folders where all are known, else what was to be read."""
    known = {one.roots for one in reads if one.is_complete}
    places = (
        place
        for one in reads
        for place in (one.paths if one.is_complete else one.roots)
        if one.is_complete or one.roots not in known
    )
    return iter(dict.fromkeys(map(normal_place, places)))


def _is_unread(one: DeclaredInput, reads: Sequence[DataRead]) -> bool:
    roots = {normal_place(root) for read in reads for root in read.roots}
    return bool(one.urls) and not any(_is_in(root, [url]) or _is_in(url, [root]) for url in one.urls for root in roots)


def _columns(captured: Captured, declared: DeclaredData, url: str, find: Find) -> OutputColumns | None:
    """Of the first write into the folder that has any: what is written there besides looks the same."""

    def sources(read: Sequence[ColumnRead]) -> tuple[Source, ...]:
        return tuple(sorted({(_source(roots, declared, find), column) for roots, column in read}))

    for write in captured.writes:
        if write.columns and write.path and _is_in(write.path, [url]):
            each = (OutputColumn(one.name, one.type, sources(one.inputs), one.is_opaque) for one in write.columns)
            return OutputColumns(tuple(each), sources(write.rows_from))
    return None


def _source(roots: Sequence[str], declared: DeclaredData, find: Find) -> str:
    """The feed that is read there, or the place."""
    first = normal_place(roots[0])
    for one in declared.inputs.values():
        if any(_is_in(first, [url]) for url in one.urls):
            return one.feed
    found = find(first)
    return found.feed if found else first


def _is_in(place: str, folders: Sequence[str]) -> bool:
    normal = normal_place(place)
    return any(normal == one or normal.startswith(f"{one}/") for one in map(normal_place, folders))


def normal_place(place: str) -> str:
    """A path or URL in one spelling: Spark and fsspec have several for the same."""
    return _SCHEMES.sub("s3://", _LOCAL.sub("/", place, count=1), count=1).rstrip("/") or "/"


def _some(said: list[str], count: int = _SHOWN) -> list[str]:
    more = len(said) - count
    return said if more <= 0 else [*said[:count], f"... and {more} more like that"]
