"""``falcon lineage search``."""

from __future__ import annotations

import click

from falcon_assets.features.lineage.searching import FIELDS, search_lineage
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.lineage.words import made, named, status
from falcon_assets.surface.cli.listing import print_json


@click.command()
@click.option(
    "--where",
    multiple=True,
    metavar="FIELD=VALUE",
    help="What is to be so; may be repeated. Also with !=, >=, <=, > and <; in texts * stands for any text. Fields: "
    f"{', '.join(FIELDS)}.",
)
@click.option("--after", metavar="NEXT", help="Go on where a list in JSON ended that said NEXT.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="So many at most.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def search(where: tuple[str, ...], after: str | None, limit: int, as_json: bool) -> None:
    """Find versions by anything that is known of them, those that history mentions last first.

    Of several conditions with = and one field any may fit, of all others all must. owner, tag and group are those of
    the feed.
    """
    with open_installation() as installation:
        found = search_lineage(installation, where, after=after, limit=limit)
    if as_json:
        print_json(found.as_data())
        return
    for one in found.items:
        click.echo(f"{named(one)}  {status(one)}{made(one)}")
    if not found.items:
        click.echo("no version is so")
    if found.next is not None:
        click.echo("there are more: --limit shows more, --where fewer; --json says how to go on (next)")
