"""``falcon lineage export``: lineage for other systems."""

from __future__ import annotations

import json
from datetime import datetime

import click

from falcon_assets.features.openlineage.operations import export_openlineage
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.parameters import INSTANT


@click.command()
@click.argument("names", nargs=-1, metavar="[FEED | PROCESS]...")
@click.option("--openlineage", is_flag=True, required=True, help="As run events of OpenLineage, one in each line.")
@click.option("--since", type=INSTANT, help="Only what ended then or later.")
@click.option("--cluster", help="Only on this cluster.")
def export(names: tuple[str, ...], openlineage: bool, since: datetime | None, cluster: str | None) -> None:
    """Write what ran, what it read and what it made, for systems that collect lineage.

    With names, only runs of these processes and runs that wrote these feeds. What is exported again has the same run
    ids, so that such a system knows it.
    """
    with open_installation() as installation:
        for event in export_openlineage(installation, names, since=since, cluster=cluster):
            click.echo(json.dumps(event))
