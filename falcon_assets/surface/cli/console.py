"""The console that tables are printed on."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from falcon_assets.base.texts import hidden, visible
from falcon_assets.surface.cli.long_tables import print_long

_WIDE = 10_000


def console(file: TextIO | None = None) -> Console:
    """Folds what is wider than a terminal; a log or another program gets every line as it is, however long.

    Nothing is coloured that nobody marked: what looks like a number or a path is guessed, and takes minutes for a
    text of megabytes. Nor is `:name:` an emoji.
    """
    made = Console(file=file, soft_wrap=True, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = _WIDE
    return made


def shown(text: str) -> str:
    """A text that may hold anything, for where rich reads markup: it acts neither on that nor on the terminal."""
    return escape(visible(hidden(text)))


def print_table(table: Table, on: Console | None = None, *, nothing: str = "nothing fits") -> None:
    """Prints the table; where a terminal is too narrow for its words, the values of each row one below the other."""
    target = on or console()
    if not table.row_count:
        target.print(nothing, markup=False)
        return
    if print_long(table, target):
        return
    least = target.measure(table, options=target.options.update(max_width=_WIDE)).minimum
    if least <= target.width:
        target.print(table)
        return
    names = [str(column.header) for column in table.columns]
    widest = max(map(len, names))
    for row in zip(*(column.cells for column in table.columns), strict=True):
        for name, value in zip(names, row, strict=True):
            if value:
                target.print(f"[bold]{name:<{widest}}[/]  {value}")
        target.print()
