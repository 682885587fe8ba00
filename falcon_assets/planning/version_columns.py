"""The columns of versions, and their origins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Generic, Self, TypeAlias

from typing_extensions import TypeVar

_Any = TypeVar("_Any")
Source: TypeAlias = tuple[str, str]
"""A feed, or a place without one, and a column."""
From = TypeVar("From", bound=tuple[Any, str], default=Source)
"""What a column was made from: a :data:`Source`, or what a run has read there."""

Hows: TypeAlias = tuple[tuple[str, ...], ...]
"""For several sources, the ways of each in OpenLineage's terms; empty: not recorded.

``IDENTITY``, ``TRANSFORMATION`` and ``AGGREGATION`` are values that contributed, each covering those before it;
``CONDITIONAL``, ``WINDOW``, ``JOIN``, ``FILTER``, ``GROUP_BY`` and ``SORT`` only decided something.
"""
DIRECT = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")


@dataclass(frozen=True)
class OutputColumn(Generic[From]):
    """A column of an output; opaque: it passed through code that Spark does not look into, which may add sources."""

    name: str
    type: str
    inputs: tuple[From, ...] = ()
    is_opaque: bool = False
    how: Hows = field(default=(), compare=False)

    def as_data(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.type, "from": _as_data(self.inputs, self.how), "opaque": self.is_opaque}

    @classmethod
    def of_data(cls, said: Mapping[str, Any]) -> OutputColumn:
        return OutputColumn(said["name"], said["type"], _of_data(said["from"]), said["opaque"], hows_of(said["from"]))


@dataclass(frozen=True)
class OutputColumns(Generic[From]):
    """The columns of an output; ``rows_from`` are filters, joins, groups and order (None: not recorded)."""

    each: tuple[OutputColumn[From], ...]
    rows_from: tuple[From, ...] | None = None
    are_rows_opaque: bool = False
    rows_how: Hows = field(default=(), compare=False)

    def as_data(self) -> dict[str, Any]:
        rows = None if self.rows_from is None else _as_data(self.rows_from, self.rows_how)
        data = {"columns": [one.as_data() for one in self.each], "rows_from": rows}
        return {**data, "rows_opaque": True} if self.are_rows_opaque else data

    @classmethod
    def of_data(cls, said: Mapping[str, Any]) -> OutputColumns:
        rows = said["rows_from"]
        each = tuple(map(OutputColumn.of_data, said["columns"]))
        decided = None if rows is None else _of_data(rows)
        return OutputColumns(each, decided, bool(said.get("rows_opaque")), hows_of(rows or ()))

    def differs_from(self, other: Self) -> bool:
        recorded = None not in (self.rows_from, other.rows_from)
        rows = (self.rows_from, self.are_rows_opaque) != (other.rows_from, other.are_rows_opaque)
        return (recorded and rows) or self.each != other.each

    def only(self, wanted: Callable[[str], bool]) -> Self:
        def kept(sources: tuple[From, ...], hows: Hows) -> tuple[tuple[From, ...], Hows]:
            known = [(one, how) for one, how in with_hows(sources, hows) if wanted(one[0])]
            return tuple(one for one, _ in known), tuple(how for _, how in known)

        each = []
        for one in self.each:
            inputs, how = kept(one.inputs, one.how)
            each.append(replace(one, inputs=inputs, how=how))
        rows, rows_how = (None, ()) if self.rows_from is None else kept(self.rows_from, self.rows_how)
        return replace(self, each=tuple(each), rows_from=rows, rows_how=rows_how)


def with_hows(sources: Sequence[_Any], hows: Hows) -> list[tuple[_Any, tuple[str, ...]]]:
    return list(zip(sources, hows if len(hows) == len(sources) else ((),) * len(sources), strict=True))


def is_place(source: str) -> bool:
    return re.fullmatch(r"[A-Za-z][\w-]*", source) is None


def _as_data(sources: Sequence[tuple[Any, str]], hows: Hows) -> list[dict[str, Any]]:
    return [
        {"feed": feed, "column": column, **({"how": list(how)} if how else {})}
        for (feed, column), how in with_hows(sources, hows)
    ]


def hows_of(said: Sequence[Mapping[str, Any]]) -> Hows:
    return tuple(tuple(one.get("how", ())) for one in said)


def _of_data(said: Sequence[Mapping[str, str]]) -> tuple[Source, ...]:
    return tuple((one["feed"], one["column"]) for one in said)


class VersionStatus(str, Enum):
    AVAILABLE = "AVAILABLE"
    REPLACED = "REPLACED"
    EVICTED = "EVICTED"
    READ = "READ"
    """Was read by a run, but never recorded as available: replaced before that, or yet to be collected."""
