"""``falcon entity``: which feeds and processes are scheduled, and commands that change it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.errors import UnknownEntityError
from falcon_assets.ledger.commands import Command, obey
from falcon_assets.ledger.status import EntityStatus, statuses
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.orchestration.platform.dagster_instance import open_instance
from falcon_assets.orchestration.platform.open_ledger import Ledger, open_ledger
from falcon_assets.settings import Settings, load_settings

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
    settings = load_settings()
    store = load_entities(settings.entity_defs).in_colo(settings.colo)
    entities = [one for one in _all(store) if kind in (None, one.kind)]
    with _ledger(settings) as ledger, ledger.engine.begin() as connection:
        found = statuses(connection, entities, settings.now())
    if as_json:
        click.echo(json.dumps([_as_dict(*key, status) for key, status in found.items()], indent=2))
        return
    table = Table("kind")
    table.add_column("name", overflow="fold")
    for column in ("status", "since", "by"):
        table.add_column(column, no_wrap=True)
    for key, status in found.items():
        shown = status.status.value
        table.add_row(*key, f"[{_COLORS[shown]}]{shown}[/]", _moment(status.since), _by(status))
    Console(soft_wrap=True).print(table)


def _add(asked: Command, text: str) -> None:
    """Adds the command that tells an entity ``asked``."""

    @entity.command(asked.value, help=text)
    @click.argument("name")
    @click.option("--kind", type=_KIND, help="Which one, where a feed and a process have that name.")
    def tell(name: str, kind: str | None) -> None:
        settings = load_settings()
        one = _named(load_entities(settings.entity_defs).in_colo(settings.colo), name, kind)
        with _ledger(settings) as ledger, ledger.engine.begin() as connection:
            outcome = obey(connection, one, asked, settings.now())
        after = outcome.after
        if outcome.before == after:
            since = f"since {_moment(after.since)}, {_by(after)}"
            click.echo(f"{one.kind} {name} is {after.status.value} already ({since}): nothing to do")
        else:
            click.echo(f"{one.kind} {name} is {after.status.value} now, it was {outcome.before.status.value}")


_add(Command.SCHEDULE, "Let what is SUBMITTED run by itself from now on.")
_add(Command.SUSPEND, "Start no more instances of what is RUNNING; those that run already go on.")
_add(Command.RESUME, "Let what is SUSPENDED run again, the instances of the meantime included.")


@contextmanager
def _ledger(settings: Settings) -> Iterator[Ledger]:
    with open_instance(settings) as instance:
        yield open_ledger(settings, instance)


def _all(store: EntityStore) -> list[Feed | Process]:
    return [*store.feeds.values(), *store.processes.values()]


def _named(store: EntityStore, name: str, kind: str | None) -> Feed | Process:
    """The entity of that name.

    Raises:
        UnknownEntityError: there is none, or there are two and ``kind`` is not given.
    """
    kinds: dict[str, Callable[[str], Feed | Process]] = {"feed": store.feed, "process": store.process}
    if kind is not None:
        return kinds[kind](name)
    found = [one for one in _all(store) if one.name == name]
    if len(found) > 1:
        raise UnknownEntityError(f"there is a feed and a process {name!r}: say which one with --kind")
    if not found:
        close = nearest(name, [one.name for one in _all(store)])
        raise UnknownEntityError(f"there is no feed or process {name!r}{close}")
    return found[0]


def _as_dict(kind: str, name: str, status: EntityStatus) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "status": status.status.value,
        "since": _moment(status.since),
        "commanded": status.commanded,
    }


def _by(status: EntityStatus) -> str:
    return "commanded" if status.commanded else "declared"


def _moment(at: datetime) -> str:
    """To the second; not by strftime, whose %Y does not pad years below 1000."""
    return at.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
