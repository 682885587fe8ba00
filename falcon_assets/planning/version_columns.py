"""The columns of versions, and what each was made from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Self, TypeAlias, TypeVar

_Any = TypeVar("_Any")
Source: TypeAlias = tuple[str, str]
"""Feed and column; of what is no feed's, the place and the column."""


Hows: TypeAlias = tuple[tuple[str, ...], ...]
"""Of several sources, in which ways something comes from each, in OpenLineage's words; none: not recorded.

``IDENTITY``, ``TRANSFORMATION`` and ``AGGREGATION`` are values that went in. ``CONDITIONAL``, ``WINDOW``, ``JOIN``,
``FILTER``, ``GROUP_BY`` and ``SORT`` decided something only.
"""
DIRECT = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")
"""Those of values that went in; each covers those before it."""


@dataclass(frozen=True)
class OutputColumn:
    """A column of an output.

    Attributes:
        name: Its name.
        type: Its type, as Spark says it.
        inputs: What it was made from.
        is_opaque: Whether it passed through code that Spark does not look into: more may have gone in.
        how: In which ways it comes from each of its inputs; columns are the same without it.
    """

    name: str
    type: str
    inputs: tuple[Source, ...] = ()
    is_opaque: bool = False
    how: Hows = field(default=(), compare=False)

    def as_data(self) -> dict[str, Any]:
        """It in JSON."""
        return {"name": self.name, "type": self.type, "from": _as_data(self.inputs, self.how), "opaque": self.is_opaque}

    @classmethod
    def of_data(cls, said: Mapping[str, Any]) -> Self:
        """What such JSON says."""
        return cls(said["name"], said["type"], _of_data(said["from"]), said["opaque"], _hows(said["from"]))


@dataclass(frozen=True)
class OutputColumns:
    """The columns of an output.

    Attributes:
        each: They, in their order.
        rows_from: What decides which rows there are: filters, joins, groups, order; None: not recorded.
        are_rows_opaque: Whether code that Spark does not look into decides it: more may.
        rows_how: In which ways each of ``rows_from`` decides.
    """

    each: tuple[OutputColumn, ...]
    rows_from: tuple[Source, ...] | None = None
    are_rows_opaque: bool = False
    rows_how: Hows = field(default=(), compare=False)

    def as_data(self) -> dict[str, Any]:
        """They in JSON."""
        rows = None if self.rows_from is None else _as_data(self.rows_from, self.rows_how)
        told = {"columns": [one.as_data() for one in self.each], "rows_from": rows}
        return {**told, "rows_opaque": True} if self.are_rows_opaque else told

    @classmethod
    def of_data(cls, said: Mapping[str, Any]) -> Self:
        """What such JSON says."""
        rows = said["rows_from"]
        each = tuple(map(OutputColumn.of_data, said["columns"]))
        opaque = bool(said.get("rows_opaque"))
        return cls(each, None, opaque) if rows is None else cls(each, _of_data(rows), opaque, _hows(rows))

    def differs_from(self, other: Self) -> bool:
        """Whether something that is recorded of both is not the same."""
        recorded = None not in (self.rows_from, other.rows_from)
        rows = (self.rows_from, self.are_rows_opaque) != (other.rows_from, other.are_rows_opaque)
        return (recorded and rows) or self.each != other.each

    def only(self, wanted: Callable[[str], bool]) -> Self:
        """They without what comes from other feeds or places."""

        def kept(sources: tuple[Source, ...], hows: Hows) -> tuple[tuple[Source, ...], Hows]:
            known = [(one, how) for one, how in with_hows(sources, hows) if wanted(one[0])]
            return tuple(one for one, _ in known), tuple(how for _, how in known)

        each = []
        for one in self.each:
            inputs, how = kept(one.inputs, one.how)
            each.append(replace(one, inputs=inputs, how=how))
        rows, rows_how = (None, ()) if self.rows_from is None else kept(self.rows_from, self.rows_how)
        return replace(self, each=tuple(each), rows_from=rows, rows_how=rows_how)


def with_hows(sources: Sequence[_Any], hows: Hows) -> list[tuple[_Any, tuple[str, ...]]]:
    """Sources, each with the ways; those that are not recorded are none."""
    return list(zip(sources, hows if len(hows) == len(sources) else ((),) * len(sources), strict=True))


def is_place(source: str) -> bool:
    """Whether a source is no feed's: a path, a URL, a table of a database."""
    return re.fullmatch(r"[A-Za-z][\w-]*", source) is None


def _as_data(sources: Sequence[Source], hows: Hows) -> list[dict[str, Any]]:
    return [
        {"feed": feed, "column": column, **({"how": list(how)} if how else {})}
        for (feed, column), how in with_hows(sources, hows)
    ]


def _hows(said: Sequence[Mapping[str, Any]]) -> Hows:
    return tuple(tuple(one.get("how", ())) for one in said)


def _of_data(said: Sequence[Mapping[str, str]]) -> tuple[Source, ...]:
    return tuple((one["feed"], one["column"]) for one in said)


class VersionStatus(str, Enum):
    """What has become of a version of a feed instance on a cluster."""

    AVAILABLE = "AVAILABLE"
    """It is there."""
    REPLACED = "REPLACED"
    """Another version took its place."""
    EVICTED = "EVICTED"
    """Retention deleted or archived it."""
    READ = "READ"
    """A run read it, and nobody recorded that it was there: it was replaced before, or has yet to be collected."""
