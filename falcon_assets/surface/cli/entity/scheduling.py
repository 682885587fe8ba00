"""``falcon entity schedule|suspend|resume``."""

from __future__ import annotations

from collections.abc import Callable

import click

from falcon_assets.features.entities.results import EntityState, OperationResult, Request
from falcon_assets.features.entities.status import resume_entities, schedule_entities, suspend_entities
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.surface.cli.entity.words import commanded_or_declared, moment
from falcon_assets.surface.cli.listing import print_json


def _command(name: str, tell: Callable[[Installation, Request], OperationResult], text: str) -> click.Command:
    @click.command(name, help=f"{text}\n\nThe command applies to all that are named, or to none.")
    @click.argument("names", metavar="NAME...", nargs=-1, required=True)
    @click.option("--kind", type=click.Choice(["feed", "process"]), help="Where a feed and a process have that name.")
    @click.option("--reason", default="", help="Why, for the record.")
    @click.option("--dry-run", is_flag=True, help="Only say what would change.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    def command(names: tuple[str, ...], kind: str | None, reason: str, dry_run: bool, as_json: bool) -> None:
        with open_installation() as installation:
            result = tell(installation, Request(names, kind, None, reason, dry_run))
        if as_json:
            print_json(result.as_data())
            return
        for before, after in result.statuses:
            say(before, after, dry_run=dry_run)

    return command


def say(before: EntityState, after: EntityState, *, dry_run: bool = False) -> None:
    """Says what became of the status of an entity, or would."""
    if before == after:
        since = f"since {moment(after.since)}, {commanded_or_declared(after.commanded)}"
        click.echo(f"{after.kind} {after.name} is {after.status} already ({since}): nothing to do")
    elif dry_run:
        click.echo(f"{after.kind} {after.name} would be {after.status}, it is {before.status}")
    else:
        click.echo(f"{after.kind} {after.name} is {after.status} now, it was {before.status}")


schedule_command = _command("schedule", schedule_entities, "Let what is SUBMITTED run by itself from now on.")
suspend_command = _command(
    "suspend", suspend_entities, "Start no more instances of what is RUNNING; those that run already go on."
)
resume_command = _command(
    "resume", resume_entities, "Let what is SUSPENDED run again, the instances of the meantime included."
)
