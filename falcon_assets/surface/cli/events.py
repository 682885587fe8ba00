"""``falcon events tail``."""

from __future__ import annotations

import json
import time

import click

from falcon_assets.features.messaging.operations import PublishedEvents, TailEvents
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import shown
from falcon_assets.surface.cli.declared import command_of
from falcon_assets.surface.cli.help import FullHelpGroup

_SECONDS = 1.0
_AT_ONCE = 1_000


@click.group(cls=FullHelpGroup)
def events() -> None:
    """Show the events that clusters publish to their brokers."""


@command_of(TailEvents, "Print each event as a CloudEvent in JSON, one per line.")
@click.option("-f", "--follow", is_flag=True, help="Continue with new events, until Ctrl-C.")
def tail(asked: TailEvents, as_json: bool, follow: bool) -> None:
    with open_installation() as installation:
        found = asked.run(installation)
        _print(found, as_json=as_json)
        if not (found.items or follow or as_json):
            click.echo("no matching events")
        while follow:
            time.sleep(_SECONDS)  # nobody tells us
            found = asked.model_copy(update={"after": found.last, "limit": _AT_ONCE}).run(installation)
            _print(found, as_json=as_json)


def _print(found: PublishedEvents, *, as_json: bool) -> None:
    for one in found.items:
        if as_json:
            click.echo(json.dumps(one.event, ensure_ascii=False))
        else:
            data = one.event["data"]
            words = (one.event["time"], data["event"], data["kind"], data["entity"], data["cluster"], data["instance"])
            click.echo(shown(" ".join((*words, data.get("reason", ""))).rstrip()))


events.add_command(tail)
