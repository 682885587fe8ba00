"""``falcon notification list|test``."""

from __future__ import annotations

import click
from rich.table import Table

from falcon_assets.features.notification.lists import NotificationRow
from falcon_assets.features.notification.operations import ListNotifications, SendTest, TriedReceivers
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.paging import Page
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.entity.words import moment
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.listing import say_rest


@click.group(cls=FullHelpGroup)
def notification() -> None:
    """List notifications about instances, and send test messages."""


def _show(found: Page[NotificationRow]) -> None:
    table = Table("state", "event")
    table.add_column("entity", overflow="fold")
    for column in ("cluster", "instance"):
        table.add_column(column, no_wrap=True)
    for column in ("receiver", "reason", "what became of it"):
        table.add_column(column, overflow="fold")
    for one in found.items:
        about = (one.state.value, one.event, shown(one.entity), one.cluster, format_instant(one.instance))
        table.add_row(*about, shown(one.receiver), shown(one.reason), shown(_fate(one)))
    print_table(table, nothing="no notification fits")
    say_rest(found)


def _show_tested(found: TriedReceivers) -> None:
    for receiver, problem in found.problems.items():
        click.echo(f"{receiver}: {problem or 'sent'}", err=bool(problem))


def _fate(one: NotificationRow) -> str:
    if one.problem:
        return f"{one.problem}; next try at {moment(one.retry_at)}"
    return " ".join(text for text in (one.message and f"message {one.message}", moment(one.settled_at)) if text)


notification.add_command(command(ListNotifications, _show))
notification.add_command(command(SendTest, _show_tested, ""))
