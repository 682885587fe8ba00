"""``falcon admin root list|adopt``: the roots of stores, and that another one takes the place of one."""

from __future__ import annotations

import click
from rich.table import Table

from falcon_assets.doctor.admin import adopt_root, list_roots
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.listing import print_json


@click.group(cls=FullHelpGroup)
def root() -> None:
    """Show the roots of stores, and take what is at one now for it.

    A root is marked when it is used first. What does not carry its mark is away, like an empty mount point: nothing is
    read or written there.
    """


@root.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List the roots of all stores, and say which are away."""
    with open_installation() as installation:
        found = list_roots(installation)
    if as_json:
        print_json([one.as_data() for one in found])
        return
    table = Table("cluster")
    table.add_column("root", overflow="fold")
    table.add_column("known since", no_wrap=True)
    table.add_column("state", overflow="fold")
    for one in found:
        there = "[green]there[/]" if one.since else "not used yet"
        state = f"[red]away: {shown(one.problem)}[/]" if one.problem else there
        table.add_row(one.cluster, shown(one.root), one.since or "", state)
    print_table(table, nothing="no cluster has a store")


@root.command()
@click.argument("cluster")
@click.argument("root", required=False)
def adopt(cluster: str, root: str | None) -> None:
    """Take what is at a root of CLUSTER now for it, and mark it.

    Do it where a disk was replaced, or a bucket made anew, on purpose. ROOT is where it is, as errors and falcon admin
    root list say; else it is that of the cluster's write endpoint. Instances that are not there any more have to be
    made or brought again: nothing of what is recorded changes.
    """
    with open_installation() as installation:
        changed = adopt_root(installation, cluster, root)
    click.echo("adopted" if changed else "unchanged: it is the root already")
