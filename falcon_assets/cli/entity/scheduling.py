"""``falcon entity schedule|suspend|resume``."""

from __future__ import annotations

from collections.abc import Callable

import click

from falcon_assets.cli.entity.words import commanded_or_declared, moment
from falcon_assets.operations.entities.status import EntityState, resume, schedule, suspend
from falcon_assets.operations.installation import open_installation


def _command(tell: Callable[..., tuple[EntityState, EntityState]], text: str) -> click.Command:
    """The command that calls the operation, and has its name."""

    @click.command(tell.__name__, help=text)
    @click.argument("name")
    @click.option("--kind", type=click.Choice(["feed", "process"]), help="Where a feed and a process have that name.")
    def command(name: str, kind: str | None) -> None:
        with open_installation() as installation:
            say(*tell(installation, name, kind))

    return command


def say(before: EntityState, after: EntityState) -> None:
    """Says what became of the status of an entity."""
    if before == after:
        since = f"since {moment(after.since)}, {commanded_or_declared(after.commanded)}"
        click.echo(f"{after.kind} {after.name} is {after.status} already ({since}): nothing to do")
    else:
        click.echo(f"{after.kind} {after.name} is {after.status} now, it was {before.status}")


STATUS_COMMANDS = (
    _command(schedule, "Let what is SUBMITTED run by itself from now on."),
    _command(suspend, "Start no more instances of what is RUNNING; those that run already go on."),
    _command(resume, "Let what is SUSPENDED run again, the instances of the meantime included."),
)
