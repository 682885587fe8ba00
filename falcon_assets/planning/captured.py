"""Reads, writes and columns of an instance, parsed from the JSON of the Spark listener."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from falcon_assets.base.texts import hidden
from falcon_assets.planning.version_columns import Hows, hows_of

ColumnRead: TypeAlias = tuple[tuple[str, ...], str]


@dataclass(frozen=True)
class DataRead:
    """A read; where it is not complete, ``paths`` lacks some files, and only the roots are known."""

    roots: tuple[str, ...]
    paths: tuple[str, ...]
    is_complete: bool


@dataclass(frozen=True)
class WrittenColumn:
    """A written column; opaque: it passed through code that Spark does not look into, which may add inputs."""

    name: str
    type: str
    inputs: tuple[ColumnRead, ...]
    is_opaque: bool
    how: Hows = ()


@dataclass(frozen=True)
class DataWrite:
    """A write; ``rows_from`` decides which rows there are, opaque: with code that Spark does not look into.

    ``path`` None: to something without a path. ``source``: the writer, if not Spark's own writer of files. ``roots``:
    of each read whose data was written.
    """

    path: str | None
    source: str | None
    columns: tuple[WrittenColumn, ...]
    rows_from: tuple[ColumnRead, ...] = ()
    are_rows_opaque: bool = False
    is_append: bool = False
    roots: tuple[tuple[str, ...], ...] = ()
    rows_how: Hows = ()


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
        WrittenColumn(
            column["name"],
            column["type"],
            _column_reads(column["from"]),
            column["isOpaque"],
            hows_of(column["from"]),
        )
        for column in one.get("columns", ())
    )
    return DataWrite(
        one["path"] and _place(one["path"]),
        one.get("source"),
        columns,
        _column_reads(one.get("rowsFrom", ())),
        one.get("areRowsOpaque", False),
        one.get("isAppend", False),
        tuple(map(_places, one.get("roots", ()))),
        hows_of(one.get("rowsFrom", ())),
    )


def _column_reads(said: Iterable[dict[str, Any]]) -> tuple[ColumnRead, ...]:
    return tuple((_places(one["roots"]), one["column"]) for one in said)


def _places(said: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(_place, said))


def _place(said: str) -> str:
    """Hides passwords in JDBC URLs only: names of folders merely look like them."""
    return hidden(said) if said.startswith("jdbc:") else said
