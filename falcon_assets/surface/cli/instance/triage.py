"""``falcon instance triage``: why is this instance not there?"""

from __future__ import annotations

from datetime import datetime

import click
from rich.tree import Tree

from falcon_assets.errors import StorageError
from falcon_assets.features.triage import words
from falcon_assets.features.triage.operations import triage as triaged
from falcon_assets.features.triage.tree import Cause
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import console, shown
from falcon_assets.surface.cli.listing import print_json
from falcon_assets.surface.cli.parameters import one_instance

_COLORS = {"SUCCEEDED": "green", "AVAILABLE": "green", "RUNNING": "cyan", "WAITING": "yellow", "SUSPENDED": "yellow"}


@click.command()
@click.argument("name")
@one_instance
@click.option("--cluster", help="Which cluster, where it is on several.")
@click.option("--type", "kind", type=click.Choice(["process", "feed"]), help="Which, where both have that name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a tree.")
def triage(name: str, instance: datetime, cluster: str | None, kind: str | None, as_json: bool) -> None:
    """Show why the INSTANCE (YYYY-MM-DDTHH:MMZ) of the process or feed NAME is not there.

    Goes from what it lacks to what brings that, back to the causes, and shows with each what mends it. Equal causes
    are shown once. An instance that is there says so. The exit code is 0 in either case, and 1 where a store could not
    be asked.
    """
    with open_installation() as installation:
        found = triaged(installation, name, instance, cluster, kind)
    if as_json:
        print_json(found.as_data())
    else:
        tree = Tree(_said(found.cause))
        _grow(tree, found.cause)
        console().print(tree, soft_wrap=False)  # else what is wider than a terminal would be cut off
    if found.cause.unasked:
        raise StorageError(f"not everything could be looked at: {found.cause.unasked}")


def _grow(tree: Tree, cause: Cause) -> None:
    for line in words.notes(cause):
        tree.add(shown(line))
    if cause.fix:
        tree.add(f"[bold]fix:[/] {shown(cause.fix)}")
    for one in cause.causes:
        _grow(tree.add(_said(one)), one)


def _said(cause: Cause) -> str:
    state = f"[{_COLORS.get(cause.state, 'red')}]{cause.state}[/]"
    return f"{shown(words.subject(cause))} {state}{shown(words.reason(cause))}"
