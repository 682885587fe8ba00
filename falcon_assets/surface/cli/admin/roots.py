"""``falcon admin root list|adopt``: the roots of stores, and that another one takes the place of one."""

from __future__ import annotations

import click
from rich.table import Table

from falcon_assets.doctor.admin import AdoptRoot, ListRoots, RootState
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.help import FullHelpGroup


@click.group(cls=FullHelpGroup)
def root() -> None:
    """List storage roots, and accept their present content.

    A root is marked at its first use. A root without its mark, such as an empty mount point, counts as unavailable:
    nothing is read or written there.
    """


def _show(found: list[RootState]) -> None:
    table = Table("cluster")
    table.add_column("root", overflow="fold")
    table.add_column("known since", no_wrap=True)
    table.add_column("state", overflow="fold")
    for one in found:
        there = "[green]there[/]" if one.since else "not used yet"
        state = f"[red]away: {shown(one.problem)}[/]" if one.problem else there
        table.add_row(one.cluster, shown(one.root), one.since or "", state)
    print_table(table, nothing="no cluster has a store")


def _show_adopted(changed: bool) -> None:
    click.echo("adopted" if changed else "unchanged: it is the root already")


root.add_command(command(ListRoots, _show))
root.add_command(command(AdoptRoot, _show_adopted, ""))
