"""Options of commands that list: filters, order, which part, and the format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from falcon_assets.errors import QueryError, count_of
from falcon_assets.operations.paging import Page, known_field

T = TypeVar("T")
_LONGEST = 200
"""Characters of a text in a line of a table."""
Command = TypeVar("Command", bound=Callable[..., Any])


def _filters(fields: Mapping[str, object], values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each ``field=value`` as a pair."""
    found = []
    for text in values:
        field, equals, wanted = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r}: write field=value")
        found.append((_field(fields, field.strip()), wanted.strip()))
    return tuple(found)


def _field(fields: Mapping[str, object], field: str) -> str:
    try:
        return known_field(field, fields)
    except QueryError as error:
        raise click.BadParameter(str(error)) from error


def list_options(
    fields: Mapping[str, object], orders: Mapping[str, object] | None = None
) -> Callable[[Command], Command]:
    """Adds --filter, --sort, --offset, --limit and --json."""
    known = f" ({', '.join(orders)})" if orders else ""
    return _adding(
        _filter_option(fields),
        _sort_option(orders or fields, f"Sort by this field{known}; -FIELD reverses the order."),
        click.option("--offset", type=click.IntRange(0), default=0, help="Skip this many items."),
        click.option("--limit", type=click.IntRange(1), help="Maximum number of items."),
        _JSON,
    )


def keyset_options(fields: Mapping[str, object], orders: Mapping[str, object]) -> Callable[[Command], Command]:
    """Adds --filter, --sort, --after, --limit and --json, of lists that are too long to be counted through."""
    known = " or ".join(orders)
    return _adding(
        _filter_option(fields),
        _sort_option(orders, f"Sort by {known}; -FIELD reverses the order.", default=next(iter(orders))),
        click.option(
            "--after", metavar="NEXT", help='Continue a list: the value of "next" in the previous list\'s JSON.'
        ),
        click.option(
            "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Maximum number of items."
        ),
        _JSON,
    )


_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def _filter_option(fields: Mapping[str, object]) -> Callable[[Any], Any]:
    return click.option(
        "--filter",
        "filters",
        metavar="FIELD=VALUE",
        multiple=True,
        callback=lambda _ctx, _param, values: _filters(fields, values),
        help=f"Only items with this value; may be repeated. Fields: {', '.join(fields)}.",
    )


def _sort_option(fields: Mapping[str, object], text: str, default: str | None = None) -> Callable[[Any], Any]:
    return click.option(
        "--sort",
        metavar="FIELD",
        default=default,
        callback=lambda _ctx, _param, sort: sort if sort is None else (_field(fields, sort.removeprefix("-")), sort)[1],
        help=text,
    )


def _adding(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2))


def one_line(text: str) -> str:
    """The text in one line of a table, as far as it is short enough to be read there; JSON has all of it."""
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3]}..."


def say_more(shown: int, total: int | None, noun: str, plural: str | None = None) -> None:
    """Says of a list whose parts only programs ask for that there is more, and how to see it; total None: unknown."""
    how = "--limit shows more, filters fewer; --json says how to go on (next)"
    there = (
        f"the first {count_of(shown, noun, plural)}"
        if total is None
        else f"{shown:,} of {count_of(total, noun, plural)}"
    )
    click.echo(f"{there}: {how}")


def say_rest(page: Page[Any]) -> None:
    """Says how to see the rest of a list, where there is more."""
    if page.next is not None:
        click.echo(f"{len(page.items)} of {count_of(page.total, 'line')}; the next ones: --offset {page.next}")
