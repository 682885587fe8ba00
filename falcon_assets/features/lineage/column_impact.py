"""Impact of a column: the columns of other versions that depend on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from falcon_assets.features.lineage.graph import Graph
from falcon_assets.history.events.data_version import Version
from falcon_assets.planning.version_columns import OutputColumns, Source


@dataclass(frozen=True)
class Affected:
    """The dependence of a version on a column of another.

    Attributes:
        columns: Certainly made from it.
        perhaps: Perhaps made from it: through code that Spark cannot analyze.
        rows: Whether it decides which rows exist, so that all columns depend on it.
        is_known: Whether this is complete; False where columns on the way are not recorded.
    """

    columns: frozenset[str] = frozenset()
    perhaps: frozenset[str] = frozenset()
    rows: bool = False
    is_known: bool = True

    def __bool__(self) -> bool:
        return bool(self.columns or self.perhaps or self.rows or not self.is_known)

    def __or__(self, other: Affected) -> Affected:
        columns = self.columns | other.columns
        perhaps = (self.perhaps | other.perhaps) - columns
        return Affected(columns, perhaps, self.rows or other.rows, self.is_known and other.is_known)

    @property
    def words(self) -> str:
        said = [f"perhaps {name}" for name in sorted(self.perhaps)]
        said = [*(["its rows"] if self.rows else []), *sorted(self.columns), *said]
        return ", ".join([*said, *([] if self.is_known else ["perhaps more: not all columns are recorded"])])

    def as_data(self) -> dict[str, Any]:
        names = {"columns": sorted(self.columns), "perhaps": sorted(self.perhaps)}
        return {**names, "rows": self.rows, "known": self.is_known}


def affected_by(graph: Graph, columns: Mapping[str, OutputColumns], start: int, column: str) -> dict[int, Affected]:
    """Returns the dependencies on a column by number of version; ``columns`` are by plan, as far as recorded."""
    following = graph.next(up=False)
    found = {start: Affected(frozenset({column}))}
    waiting = [start]
    while waiting:
        number = waiting.pop()
        for edge in following.get(number, ()):
            version, made = graph.versions[number], graph.versions[edge.output]
            before = found.get(edge.output, Affected())
            after = before | _next(found[number], version, made, columns.get(made.plan or ""))
            if after != before:
                found[edge.output] = after
                waiting.append(edge.output)
    return {number: one for number, one in found.items() if number != start}


def _next(affected: Affected, version: Version, made: Version, columns: OutputColumns | None) -> Affected:
    if (made.feed, made.instance) == (version.feed, version.instance):
        return affected  # a copy
    if columns is None:
        return Affected(is_known=False)
    sure, unsure = set[str](), set[str]()
    for one in columns.each:
        if one.is_opaque:
            unsure.add(one.name)
        elif _depends(one.inputs, version.feed, affected, sure=True):
            sure.add(one.name)
        elif _depends(one.inputs, version.feed, affected, sure=False):
            unsure.add(one.name)
    decides = columns.rows_from or ()
    rows = _depends(decides, version.feed, affected, sure=True)
    is_known = columns.rows_from is not None and (rows or not _depends(decides, version.feed, affected, sure=False))
    # What was read and no column comes from went through the program perhaps, which may have done anything with it.
    sources = {source for source, _ in (*decides, *(read for one in columns.each for read in one.inputs))}
    is_known = is_known and not columns.are_rows_opaque and version.feed in sources
    return Affected(frozenset(sure), frozenset(unsure), rows, is_known)


def _depends(sources: Sequence[Source], feed: str, affected: Affected, *, sure: bool) -> bool:
    """Decides whether one of these columns is affected: certainly with ``sure``, else perhaps."""
    names = [column for source, column in sources if source == feed]
    if sure:
        return (affected.rows and bool(names)) or any(name in affected.columns for name in names)
    return (bool(names) and not affected.is_known) or any(name in affected.perhaps for name in names)
