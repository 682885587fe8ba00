"""From which columns of feeds and places the columns of an output come, through what an instance wrote on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from falcon_assets.planning.lineage.captured import Captured, ColumnRead, DataWrite, WrittenColumn
from falcon_assets.planning.lineage.columns import DIRECT, Hows, OutputColumn, OutputColumns, Source, with_hows
from falcon_assets.planning.lineage.declared import DeclaredData, Find, is_in, normal_place


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
