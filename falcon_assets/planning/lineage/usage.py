"""What a process instance really read and wrote, held against what its process declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from falcon_assets.planning.lineage.captured import Captured, DataRead
from falcon_assets.planning.lineage.columns import OutputColumns
from falcon_assets.planning.lineage.declared import (
    DeclaredData,
    DeclaredInput,
    Find,
    FoundInstance,
    is_in,
    normal_place,
)
from falcon_assets.planning.lineage.origins import Origins

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
