"""``falcon admin audit``: who did what."""

from __future__ import annotations

from rich.table import Table

from falcon_assets.errors import count_of
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.audit import AuditEntry, ListAudit
from falcon_assets.operations.paging import Page
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.entity.words import moment
from falcon_assets.surface.cli.listing import say_rest

_COLORS = {"done": "green", "unchanged": "default", "denied": "red", "failed": "yellow"}
_SHOWN = 3


def _show(found: Page[AuditEntry]) -> None:
    table = Table("at", "who", "operation")
    for column in ("entities", "instances"):
        table.add_column(column, overflow="fold")
    table.add_column("result", no_wrap=True)
    table.add_column("reason", overflow="fold")
    for one in found.items:
        who = one.principal if one.principal == one.os_user else f"{one.principal} (by {one.os_user})"
        result = f"[{_COLORS[one.result]}]{one.result}[/]"
        why = " ".join(text for text in (one.reason, one.message and f"({one.message})") if text)
        what = (shown(_entities(one)), _instances(one))
        table.add_row(moment(one.at), shown(f"{who}, {one.way}"), one.operation, *what, result, shown(why))
    print_table(table, nothing="no operation fits")
    say_rest(found)


def _entities(one: AuditEntry) -> str:
    """The first ones."""
    named = ", ".join(f"{kind} {name}" for kind, name in one.entities[:_SHOWN])
    more = len(one.entities) - _SHOWN
    return f"{named} and {more} more" if more > 0 else named


def _instances(one: AuditEntry) -> str:
    if one.instances is None:
        return ""
    if one.first is None or one.last is None:
        return "none"
    first = format_instant(one.first)
    if one.first == one.last:
        return f"{count_of(one.instances, 'instance')}: {first}"
    return f"{count_of(one.instances, 'instance')}: {first} to {format_instant(one.last)}"


audit = command(ListAudit, _show)
