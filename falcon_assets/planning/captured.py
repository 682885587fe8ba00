"""Reads, writes and columns of an instance, parsed from the JSON of the Spark listener."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from falcon_assets.base.texts import hidden
from falcon_assets.planning.version_columns import OutputColumn, OutputColumns, hows_of

ColumnRead: TypeAlias = tuple[tuple[str, ...], str]
"""The roots of a read, and a column."""


@dataclass(frozen=True)
class DataRead:
    """A read; where it is not complete, ``paths`` lacks some files, and only the roots are known."""

    roots: tuple[str, ...]
    paths: tuple[str, ...]
    is_complete: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class DataWrite(OutputColumns[ColumnRead]):
    """A write, and the columns of what it wrote; ``path`` None: to something without a path.

    ``source`` is the writer, if not Spark's own writer of files; ``roots`` are of each read whose data was written.
    """

    path: str | None
    source: str | None = None
    is_append: bool = False
    roots: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Captured:
    """Reads and writes; ``unknown``: actions at unknown places, in words; ``problem``: why this may be incomplete."""

    reads: tuple[DataRead, ...] = ()
    writes: tuple[DataWrite, ...] = ()
    unknown: tuple[str, ...] = ()
    problem: str = ""


def parse_captured(text: str) -> Captured:
    """Raises ValueError where the text is not of the listener's form."""
    try:
        said = json.loads(text)
        lost = "" if said["isComplete"] else "Spark's listeners lag behind, and events were lost"
        return Captured(
            tuple(
                DataRead(_places(one["roots"]), _places(one["paths"]), one["isComplete"])
                for one in said.get("reads", ())
            ),
            tuple(map(_write, said.get("writes", ()))),
            tuple(map(hidden, said.get("unknown", ()))),
            hidden(said.get("problem") or lost),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not what the listener says: {error}") from error


def _write(one: dict[str, Any]) -> DataWrite:
    columns = tuple(
        OutputColumn(said["name"], said["type"], _column_reads(said["from"]), said["isOpaque"], hows_of(said["from"]))
        for said in one.get("columns", ())
    )
    decided = one.get("rowsFrom", ())
    return DataWrite(
        columns,
        _column_reads(decided),
        one.get("areRowsOpaque", False),
        hows_of(decided),
        path=one["path"] and _place(one["path"]),
        source=one.get("source"),
        is_append=one.get("isAppend", False),
        roots=tuple(map(_places, one.get("roots", ()))),
    )


def _column_reads(said: Iterable[dict[str, Any]]) -> tuple[ColumnRead, ...]:
    return tuple((_places(one["roots"]), one["column"]) for one in said)


def _places(said: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(_place, said))


def _place(said: str) -> str:
    """Hides passwords in JDBC URLs only: names of folders merely look like them."""
    return hidden(said) if said.startswith("jdbc:") else said
