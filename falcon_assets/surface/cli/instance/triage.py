"""``falcon instance triage``: why is this instance not there?"""

from __future__ import annotations

from rich.tree import Tree

from falcon_assets.errors import StorageError
from falcon_assets.features.triage import words
from falcon_assets.features.triage.operations import Triage, TriageInstance
from falcon_assets.features.triage.tree import Cause, by_reason
from falcon_assets.operations.installation import open_installation
from falcon_assets.operations.operation import data_of
from falcon_assets.surface.cli.console import console, shown
from falcon_assets.surface.cli.declared import command_of
from falcon_assets.surface.cli.listing import print_json

_COLORS = {"SUCCEEDED": "green", "AVAILABLE": "green", "RUNNING": "cyan", "WAITING": "yellow", "SUSPENDED": "yellow"}


@command_of(TriageInstance, "Print JSON instead of a tree.")
def triage(asked: TriageInstance, as_json: bool) -> None:
    with open_installation() as installation:
        found = asked.run(installation)
    data = data_of(found)
    if as_json:
        print_json(data)
    else:
        _show(found)
    if unasked := data.get("unasked"):
        raise StorageError(f"not everything could be looked at: {unasked}")


def _show(found: Triage) -> None:
    tree = Tree(_said(found.cause))
    _grow(tree, found.cause)
    console().print(tree, soft_wrap=False)  # else what is wider than a terminal would be cut off
    if len(groups := by_reason(found.cause)) > 1:
        for one in groups:
            console().print(f"{one.reason}: {one.count:,} ({shown(', '.join(one.entities))})")


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
