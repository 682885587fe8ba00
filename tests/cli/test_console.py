"""Tables on terminals of any width."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

import falcon_assets
from falcon_assets.surface.cli import console as ours
from falcon_assets.surface.cli.console import print_table
from falcon_assets.surface.cli.listing import one_line
from falcon_assets.surface.cli.long_tables import LONG


def shown(width: int) -> list[str]:
    table = Table("entity")
    table.add_column("instance", no_wrap=True)
    table.add_column("reason", overflow="fold")
    table.add_row("hourly-delays", "2013-01-01T00:00Z", escape("waits for [rows] and for much more"))
    table.add_row("hourly-delays", "2013-01-01T01:00Z", "")
    console = Console(file=io.StringIO(), width=width, soft_wrap=True)
    print_table(table, console)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [1, 20, 40])
def test_a_narrow_terminal_gets_values_below_each_other(width: int) -> None:
    assert shown(width) == [
        "entity    hourly-delays",
        "instance  2013-01-01T00:00Z",
        "reason    waits for [rows] and for much more",
        "",
        "entity    hourly-delays",
        "instance  2013-01-01T01:00Z",
        "",
    ]


@pytest.mark.parametrize("width", [60, 200])
def test_a_table_where_there_is_room(width: int) -> None:
    lines = shown(width)
    assert "hourly-delays" in lines[3]
    assert "2013-01-01T00:00Z" in lines[3]
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_table_looks_as_a_short_one(terminal: bool) -> None:
    def printed(rows: int, show: Callable[[Table, Console], object]) -> list[str]:
        table = Table("kind")
        table.add_column("state", no_wrap=True)
        table.add_column("bytes", justify="right")
        for number in range(rows):
            table.add_row("feed", "[green]RUNNING[/]" if number % 2 else escape("[Läufer:x]"), str(10**number)[:9])
        console = Console(file=io.StringIO(), width=100, soft_wrap=True, force_terminal=terminal, highlight=False)
        show(table, console)
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue().splitlines()

    ours = printed(LONG, print_table)
    by_rich = printed(LONG, lambda table, console: console.print(table))
    if terminal:  # where one colour ends and the next begins is the same for people only
        ours, by_rich = ([Text.from_ansi(line).plain for line in lines] for lines in (ours, by_rich))
    assert [line.rstrip() for line in ours] == [line.rstrip() for line in by_rich]


def test_a_reason_is_one_line_of_a_table() -> None:
    assert one_line("it failed:\n  at line 1\n\n  of all") == "it failed: at line 1 of all"
    assert one_line("x" * 201) == "x" * 197 + "..."


def test_one_factory_makes_every_console() -> None:
    package = Path(falcon_assets.__file__).parent
    others = [one for one in package.rglob("*.py") if one != package / "surface" / "cli" / "console.py"]
    texts = {one.relative_to(package): one.read_text() for one in others}
    assert [str(one) for one, text in texts.items() if "Console(" in text or "rich.markup" in text] == []


def test_what_a_table_shows_acts_on_nothing() -> None:
    assert ours.shown("[red]\x1b[2J db_password=hunter2") == "\\[red]\\x1b[2J db_password=*****"
    written = io.StringIO()
    ours.console(written).print("5 /a/b 'c'")
    assert written.getvalue() == "5 /a/b 'c'\n"
