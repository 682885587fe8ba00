"""``falcon datasource test``: what can be reached there."""

from __future__ import annotations

import click
from rich.table import Table

from falcon_assets.errors import count_of
from falcon_assets.features.datasources.operations import DatasourceContents, ReachDatasource
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.help import FullHelpGroup


@click.group(cls=FullHelpGroup)
def datasource() -> None:
    """Reach datasources, and list what is in them."""


def _show(found: DatasourceContents) -> None:
    table = Table()
    for head in ("table", "column", "type", "in a feed", "null"):
        table.add_column(head, overflow="fold")
    for one in found.tables:
        for column in one.columns:
            empty = "yes" if column.is_nullable else "no"
            table.add_row(*map(shown, (one.name, column.name, column.source_type, column.spark_type)), empty)
        if not one.columns:
            table.add_row(shown(one.name), "", "", "", "")
    if found.tables:
        print_table(table, nothing="")
    there = count_of(len(found.tables), "table") if found.tables else "it does not list what it has: give --table"
    click.echo(f"{found.name} ({found.type}) is reached by {' and '.join(found.interfaces)}: {there}")


datasource.add_command(command(ReachDatasource, _show))
