"""What was captured, as it comes from the listener."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from falcon_assets.base.texts import hidden
from falcon_assets.planning.version_columns import Hows

ColumnRead: TypeAlias = tuple[tuple[str, ...], str]
"""The roots of a read, as Spark says them, and the name of a column there."""


@dataclass(frozen=True)
class DataRead:
    """A read.

    Attributes:
        roots: What was to be read, as Spark says it.
        paths: Folders of the files that were; of a file that was named, itself.
        is_complete: Whether these are all of them; else only the roots are known.
    """

    roots: tuple[str, ...]
    paths: tuple[str, ...]
    is_complete: bool


@dataclass(frozen=True)
class WrittenColumn:
    """A column that was written.

    Attributes:
        name: Its name.
        type: Its type, as Spark says it.
        inputs: What it was made from.
        is_opaque: Whether it passed through code that Spark does not look into: more may have gone in.
        how: In which ways, of each input; none: not said.
    """

    name: str
    type: str
    inputs: tuple[ColumnRead, ...]
    is_opaque: bool
    how: Hows = ()


@dataclass(frozen=True)
class DataWrite:
    """A write.

    Attributes:
        path: Where to; None: to something that has no path.
        source: What wrote it there, if not Spark's own writer of files.
        columns: What was written.
        rows_from: What decides which rows there are.
        are_rows_opaque: Whether code that Spark does not look into decides it: more may.
        is_append: Whether what was there stays.
        roots: Of all that it was made from, the roots of each read.
        rows_how: In which ways what is in ``rows_from`` decides, of each; none: not said.
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
    """What an instance read and wrote.

    Attributes:
        reads: What it read.
        writes: What it wrote.
        unknown: In words, what it did of which nobody knows where.
        problem: Why this may not be all; empty: it is.
    """

    reads: tuple[DataRead, ...] = ()
    writes: tuple[DataWrite, ...] = ()
    unknown: tuple[str, ...] = ()
    problem: str = ""


def parse_captured(text: str) -> Captured:
    """Reads what the listener says.

    Raises:
        ValueError: it is not of that form.
    """
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
            _hows(column["from"]),
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
        _hows(one.get("rowsFrom", ())),
    )


def _hows(said: Sequence[dict[str, Any]]) -> Hows:
    return tuple(tuple(one.get("how", ())) for one in said)


def _column_reads(said: Iterable[dict[str, Any]]) -> tuple[ColumnRead, ...]:
    return tuple((_places(one["roots"]), one["column"]) for one in said)


def _places(said: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(_place, said))


def _place(said: str) -> str:
    """It as it is recorded: addresses of databases carry passwords, and names of folders only look so."""
    return hidden(said) if said.startswith("jdbc:") else said
