"""``falcon lineage search``."""

from __future__ import annotations

import click

from falcon_assets.features.lineage.searching import FoundVersions, SearchLineage
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.lineage.words import made, named, status


def _show(found: FoundVersions) -> None:
    for one in found.items:
        click.echo(f"{named(one)}  {status(one)}{made(one)}")
    if not found.items:
        click.echo("no version is so")
    if found.next is not None:
        click.echo("there are more: --limit shows more, --where fewer; --json says how to go on (next)")


search = command(SearchLineage, _show)
