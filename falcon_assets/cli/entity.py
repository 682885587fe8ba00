"""``falcon entity``: which feeds and processes are scheduled, and commands that change it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timezone

import click
from rich.table import Table

from falcon_assets.cli.console import console
from falcon_assets.operations.entities import EntityState, entity_states, resume, schedule, suspend
from falcon_assets.operations.installation import open_installation

_KIND = click.Choice(["feed", "process"])
_COLORS = {"RUNNING": "green", "SUSPENDED": "yellow", "SUBMITTED": "default"}


@click.group()
def entity() -> None:
    """List feeds and processes; schedule, suspend and resume them.

    An entity is SUBMITTED, or RUNNING where its definition says "schedule: true", until a command says otherwise.
    """


@entity.command("list")
@click.option("--kind", type=_KIND, help="Only entities of that kind.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_(kind: str | None, as_json: bool) -> None:
    """Show the status of every feed and process, since when, and whether by a command or as declared."""
    with open_installation() as installation:
        found = entity_states(installation, kind)
    if as_json:
        click.echo(json.dumps([{**asdict(one), "since": _moment(one.since)} for one in found], indent=2))
        return
    table = Table("kind")
    table.add_column("name", overflow="fold")
    for column in ("status", "since", "by"):
        table.add_column(column, no_wrap=True)
    for one in found:
        table.add_row(one.kind, one.name, f"[{_COLORS[one.status]}]{one.status}[/]", _moment(one.since), _by(one))
    console().print(table)


def _add(tell: Callable[..., tuple[EntityState, EntityState]], text: str) -> None:
    """Adds the command that calls the operation, and has its name."""

    @entity.command(tell.__name__, help=text)
    @click.argument("name")
    @click.option("--kind", type=_KIND, help="Which one, where a feed and a process have that name.")
    def command(name: str, kind: str | None) -> None:
        with open_installation() as installation:
            before, after = tell(installation, name, kind)
        if before == after:
            since = f"since {_moment(after.since)}, {_by(after)}"
            click.echo(f"{after.kind} {name} is {after.status} already ({since}): nothing to do")
        else:
            click.echo(f"{after.kind} {name} is {after.status} now, it was {before.status}")


_add(schedule, "Let what is SUBMITTED run by itself from now on.")
_add(suspend, "Start no more instances of what is RUNNING; those that run already go on.")
_add(resume, "Let what is SUSPENDED run again, the instances of the meantime included.")


def _by(one: EntityState) -> str:
    return "commanded" if one.commanded else "declared"


def _moment(at: datetime) -> str:
    """To the second; not by strftime, whose %Y does not pad years below 1000."""
    return at.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
