"""``falcon entity history|diff|restore``: the definitions that an entity has had."""

from __future__ import annotations

from dataclasses import asdict

import click
from rich.table import Table

from falcon_assets.features.entities.results import Request
from falcon_assets.features.entities.versions import entity_diff, entity_history, restore_entity
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.entity.changing import say_result
from falcon_assets.surface.cli.entity.words import KIND, moment
from falcon_assets.surface.cli.listing import print_json


@click.command()
@click.argument("name")
@click.option("--kind", type=KIND, help="Which one, where several have that name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the text of each version.")
def history(name: str, kind: str | None, as_json: bool) -> None:
    """List the definitions that NAME has had: since when, by what and whom, and why.

    A command records the version that it makes; what came by git or an editor is recorded by the first load of the
    code location.
    """
    with open_installation() as installation:
        found = entity_history(installation, name, kind)
    if as_json:
        print_json(found.as_data())
        return
    table = Table("version", "since", "by")
    for column in ("user", "reason"):
        table.add_column(column, overflow="fold")
    table.add_column("definition", no_wrap=True)
    for one in found.versions:
        by = shown(one.actor), shown(one.reason), one.text_hash[:12] if one.text_hash else "deleted"
        table.add_row(str(one.version), moment(one.since), one.operation, *by)
    print_table(table, nothing="no definition is recorded")
    if not found.is_recorded:
        click.echo("the definition in the tree is another one: the next load of the code location records it")


@click.command()
@click.argument("name")
@click.argument("version", type=click.IntRange(min=1), required=False)
@click.option("--kind", type=KIND, help="Which one, where several have that name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff(name: str, version: int | None, kind: str | None, as_json: bool) -> None:
    """Show how the definition of NAME differs from VERSION; without one, from the last other definition."""
    with open_installation() as installation:
        found = entity_diff(installation, name, version, kind)
    if as_json:
        print_json(asdict(found))
    else:
        same = f"{found.kind} {name} has the definition of version {found.version}\n"
        click.echo(found.diff or same, nl=False)


@click.command()
@click.argument("name")
@click.argument("version", type=click.IntRange(min=1))
@click.option("--kind", type=KIND, help="Which one, where several have that name.")
@click.option("--reason", default="", help="Why; it is recorded with the change.")
@click.option("--dry-run", is_flag=True, help="Only say what would change, as a diff.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def restore(name: str, version: int, kind: str | None, reason: str, dry_run: bool, as_json: bool) -> None:
    """Give NAME the definition of VERSION again, as an update; what was deleted is submitted again.

    The files of its workflows get the content that they had then. The whole tree must be valid, or nothing is written.
    """
    with open_installation() as installation:
        result = restore_entity(installation, version, Request((name,), kind, None, reason, dry_run))
    if as_json:
        print_json(result.as_data())
    else:
        say_result(result)
