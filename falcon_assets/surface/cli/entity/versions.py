"""``falcon entity history|diff``: the definitions that an entity has had."""

from __future__ import annotations

import click
from rich.table import Table

from falcon_assets.features.entities.operations import EntityDiff, EntityHistory
from falcon_assets.features.entities.versions import History, VersionDiff
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.entity.words import moment


def _show_history(found: History) -> None:
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


def _show_diff(found: VersionDiff) -> None:
    same = f"{found.kind} {found.name} has the definition of version {found.version}\n"
    click.echo(found.diff or same, nl=False)


history = command(EntityHistory, _show_history, "Print JSON, with the text of each version.")
diff = command(EntityDiff, _show_diff)
