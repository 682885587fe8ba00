"""``falcon notification list|test``."""

from __future__ import annotations

import sys

import click
from rich.table import Table

from falcon_assets.features.notification.lists import NotificationRow
from falcon_assets.features.notification.operations import ListNotifications
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.operations.paging import Page
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.entity.words import moment
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.listing import say_rest


@click.group(cls=FullHelpGroup)
def notification() -> None:
    """List what receivers are told of instances; send them a test."""


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


notification.add_command(command(ListNotifications, _show))


@notification.command()
@click.argument("entity")
def test(entity: str) -> None:
    """Send a test message to the receivers of the feed or process ENTITY; exit code 1 where one could not be told.

    The URLs are taken from the environment of this command, which may be another than that of Dagster's daemon.
    """
    from falcon_assets.features.notification.operations import try_receivers  # noqa: PLC0415 - a list sends nothing

    with open_installation() as installation:
        found = try_receivers(installation, entity)
    for receiver, problem in found.items():
        click.echo(f"{receiver}: {problem or 'sent'}", err=bool(problem))
    sys.exit(any(found.values()))


def _fate(one: NotificationRow) -> str:
    if one.problem:
        return f"{one.problem}; next try at {moment(one.retry_at)}"
    return " ".join(text for text in (one.message and f"message {one.message}", moment(one.settled_at)) if text)
