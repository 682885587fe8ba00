"""The columns of versions, and what each was made from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from typing_extensions import Self

Source: TypeAlias = tuple[str, str]
"""Feed and column; of what is no feed's, the place and the column."""


@dataclass(frozen=True)
class OutputColumn:
    """A column of an output.

    Attributes:
        name: Its name.
        type: Its type, as Spark says it.
        inputs: What it was made from.
        is_opaque: Whether it passed through code that Spark does not look into: more may have gone in.
    """

    name: str
    type: str
    inputs: tuple[Source, ...] = ()
    is_opaque: bool = False

    def as_data(self) -> dict[str, Any]:
        """It in JSON."""
        return {"name": self.name, "type": self.type, "from": _as_data(self.inputs), "opaque": self.is_opaque}

    @classmethod
    def of_data(cls, said: Mapping[str, Any]) -> Self:
        """What such JSON says."""
        return cls(said["name"], said["type"], _of_data(said["from"]), said["opaque"])


@dataclass(frozen=True)
class OutputColumns:
    """The columns of an output.

    Attributes:
        each: They, in their order.
        rows_from: What decides which rows there are: filters, joins, groups, order; None: not recorded.
        are_rows_opaque: Whether code that Spark does not look into decides it: more may.
    """

    each: tuple[OutputColumn, ...]
    rows_from: tuple[Source, ...] | None = None
    are_rows_opaque: bool = False

    def as_data(self) -> dict[str, Any]:
        """They in JSON."""
        rows = None if self.rows_from is None else _as_data(self.rows_from)
        told = {"columns": [one.as_data() for one in self.each], "rows_from": rows}
        return {**told, "rows_opaque": True} if self.are_rows_opaque else told

    @classmethod
    def of_data(cls, said: Mapping[str, Any]) -> Self:
        """What such JSON says."""
        rows = said["rows_from"]
        each = tuple(map(OutputColumn.of_data, said["columns"]))
        return cls(each, None if rows is None else _of_data(rows), bool(said.get("rows_opaque")))

    def differs_from(self, other: Self) -> bool:
        """Whether something that is recorded of both is not the same."""
        recorded = None not in (self.rows_from, other.rows_from)
        rows = (self.rows_from, self.are_rows_opaque) != (other.rows_from, other.are_rows_opaque)
        return (recorded and rows) or self.each != other.each

    def only(self, wanted: Callable[[str], bool]) -> Self:
        """They without what comes from other feeds or places."""

        def kept(sources: tuple[Source, ...]) -> tuple[Source, ...]:
            return tuple(one for one in sources if wanted(one[0]))

        each = tuple(replace(one, inputs=kept(one.inputs)) for one in self.each)
        return replace(self, each=each, rows_from=self.rows_from and kept(self.rows_from))


def is_place(source: str) -> bool:
    """Whether a source is no feed's: a path, a URL, a table of a database."""
    return re.fullmatch(r"[A-Za-z][\w-]*", source) is None


def _as_data(sources: Sequence[Source]) -> list[dict[str, str]]:
    return [{"feed": feed, "column": column} for feed, column in sources]


def _of_data(said: Sequence[Mapping[str, str]]) -> tuple[Source, ...]:
    return tuple((one["feed"], one["column"]) for one in said)
