"""Tables of thousands of rows: rich lays each cell out several times, which takes seconds that nobody needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

LONG = 100
"""Fewer rows are for rich, which can fold, too."""
_Cell: TypeAlias = tuple[str, int]
"""Printed text, and its width on a terminal."""


def print_long(table: Table, target: Console) -> bool:
    """Prints a table as rich would; whether it has done so: not what is short, has a title, or does not fit."""
    if table.row_count < LONG or table.title:
        return False
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    if any("\n" in cell for column in columns for cell in column):
        return False
    cell_of = _renderer(target)
    heads = [cell_of(f"[bold]{column.header}[/]") for column in table.columns]
    cells = [[cell_of(one) for one in column] for column in columns]
    widths = [max(width for _, width in (head, *column)) for head, column in zip(heads, cells, strict=True)]
    if sum(widths) + 3 * len(widths) + 1 > target.width:
        return False
    rows = (_row("│", row, widths, table.columns) for row in zip(*cells, strict=True))
    lines = [_rule("┏━┳┓", widths), _row("┃", heads, widths, table.columns), _rule("┡━╇┩", widths), *rows]
    target.file.write("\n".join([*lines, _rule("└─┴┘", widths), ""]))
    return True


def _renderer(target: Console) -> Callable[[str], _Cell]:
    @lru_cache(maxsize=10_000)
    def cell_of(cell: str) -> _Cell:
        if cell.isascii() and "[" not in cell and "\\" not in cell:
            return cell, len(cell)
        text = Text.from_markup(cell, emoji=False)
        with target.capture() as written:
            target.print(text, end="")
        return written.get(), text.cell_len

    return cell_of


def _row(edge: str, cells: Sequence[_Cell], widths: Sequence[int], columns: Sequence[Column]) -> str:
    shown = (_padded(*one) for one in zip(cells, widths, columns, strict=True))
    return f"{edge} {f' {edge} '.join(shown)} {edge}"


def _padded(cell: _Cell, width: int, column: Column) -> str:
    text, its_width = cell
    room = " " * (width - its_width)
    return room + text if column.justify == "right" else text + room


def _rule(parts: str, widths: Sequence[int]) -> str:
    first, line, between, last = tuple(parts)
    return first + between.join(line * (width + 2) for width in widths) + last
