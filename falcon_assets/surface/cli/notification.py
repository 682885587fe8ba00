"""``falcon notification list|test``."""

from __future__ import annotations

import sys

import click
from rich.table import Table

from falcon_assets.features.notification.lists import NotificationRow
from falcon_assets.features.notification.operations import FIELDS, ORDERS, list_notifications, notification_data
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.entity.words import moment
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.listing import list_options, print_json, query_of, say_rest


@click.group(cls=FullHelpGroup)
def notification() -> None:
    """List what receivers are told of instances; send them a test."""


@notification.command("list")
@list_options(FIELDS, ORDERS)
def list_(
    filters: tuple[tuple[str, str], ...], sort: str | None, offset: int, limit: int | None, as_json: bool
) -> None:
    """List what receivers are still to be told, and what they could not be told, the latest first.

    PENDING: it is part of the next message. SENDING: it is being sent. GIVEN_UP: the receiver could not be told for
    three days. With --filter state=SENT what they were told in the last week, with --filter message=KEY what a message
    tells.

    A receiver is shown by the name of the environment variable that holds its URL.
    """
    with open_installation() as installation:
        found = list_notifications(installation, query_of(filters, sort, offset, limit))
    if as_json:
        print_json(found.as_data(notification_data))
        return
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
