"""``falcon explain``: what one process instance reads, writes and is told."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from falcon_assets.instances.rules.newer_versions import LastUse
from falcon_assets.instances.views.explain import Explanation
from falcon_assets.instances.views.explain import explain as explained
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import console, shown
from falcon_assets.surface.cli.parameters import INSTANT


@click.command()
@click.argument("process")
@click.argument("instance", type=INSTANT)
@click.option("--cluster", help="Which cluster, where the process runs on several.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def explain(process: str, instance: datetime, cluster: str | None, as_json: bool) -> None:
    """Show what the INSTANCE (YYYY-MM-DDTHH:MMZ) of PROCESS reads, writes and is told.

    For every input instance it says whether it is available now.
    """
    with open_installation() as installation:
        found = explained(installation, process, instance, cluster)
    if as_json:
        click.echo(json.dumps(_as_dict(found), indent=2))
    else:
        _show(found, console())


def _as_dict(found: Explanation) -> dict[str, Any]:
    """What ``--json`` prints; of the instances of an input three lists in the same order."""
    return {
        "process": found.process,
        "cluster": found.cluster,
        "instance": format_instant(found.instance),
        "definition": found.definition,
        "inputs": [
            {
                "name": one.name,
                "feed": one.feed,
                "instances": [format_instant(read.instance) for read in one.instances],
                "paths": [read.path for read in one.instances],
                "available": [read.available for read in one.instances],
                **({"last_used": _last_used(one.last_used)} if one.last_used else {}),
                **({"short": one.short} if one.short else {}),
            }
            for one in found.inputs
        ],
        "outputs": [
            {"name": one.name, "feed": one.feed, "instance": format_instant(one.instance), "path": one.path}
            for one in found.outputs
        ],
        "properties": dict(found.properties),
    }


def _last_used(use: LastUse) -> dict[str, Any]:
    by, at = format_instant(use.nominal), format_instant(use.used) if use.used else None
    seen = format_instant(use.seen)
    return {"version": use.version, "instance": by, "at": at, "present": use.present, "present_seen_at": seen}


def _show(found: Explanation, console: Console) -> None:
    console.print(f"[bold]{found.process}[/] on {found.cluster} at {format_instant(found.instance)}")
    inputs = _table("Reads", "input", "feed", "instance", "available", "path")
    for one in found.inputs:
        waited = "[yellow]no, optional[/]" if one.optional else "[red]no[/]"
        for read in one.instances:
            there = "[green]yes[/]" if read.available else ": ".join(filter(None, (waited, shown(read.why))))
            inputs.add_row(one.name, one.feed, format_instant(read.instance), there, shown(read.path))
        if one.short:
            inputs.add_row(one.name, one.feed, one.short, f"{waited}: not enough instances are available", "")
        elif not one.instances:
            inputs.add_row(one.name, one.feed, "none exists", "", "")
    outputs = _table("Writes", "output", "feed", "instance", "path")
    for written in found.outputs:
        outputs.add_row(written.name, written.feed, format_instant(written.instance), shown(written.path))
    told = _table("Is told", "variable", "value")
    for name, value in sorted(found.properties.items()):
        told.add_row(shown(name), shown(value))
    console.print(inputs)
    for one in found.inputs:
        if one.last_used:
            console.print(f"{one.name} uses each version once, last {one.last_used}.", soft_wrap=True)
    console.print(outputs if found.outputs else "Writes no feed: it is run for its effect.")
    console.print(told)
    if found.definition is not None:
        present = "" if found.definition == found.latest else f"; this is what the latest, {found.latest}, says"
        console.print(f"It has version {found.definition} of the definition{present}.")


def _table(title: str, *columns: str) -> Table:
    """A table whose last column is folded, never cut: what is copied from it must be whole."""
    table = Table(*columns[:-1], title=title, title_justify="left")

    table.add_column(columns[-1], overflow="fold")
    return table
