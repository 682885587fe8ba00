"""``falcon lineage impact``: what was made from a version or a column, and has to be made again."""

from __future__ import annotations

from datetime import datetime

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.features.lineage.asking import Impact, lineage_impact, with_metadata
from falcon_assets.features.lineage.graph import instances_by_process, versions_by_feed
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.auditing import PlainRequest
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.surface.cli.lineage.graphs import (
    about_a_version,
    print_hidden,
    print_metadata,
    print_rest,
    print_summary,
    print_written,
    printed,
)
from falcon_assets.surface.cli.lineage.words import named, status
from falcon_assets.surface.cli.listing import print_json
from falcon_assets.surface.cli.parameters import NewFile


@click.command()
@about_a_version
@click.option("--column", help="Only what depends on this column of it.")
@click.option("--rerun", is_flag=True, help="Ask that what has to run again does, each after what it reads.")
@click.option("--reason", default="", help="With --rerun: why; it is recorded.")
@click.option("--dry-run", is_flag=True, help="With --rerun: only say what would change.")
def impact(
    feed: str,
    instance: datetime,
    cluster: str | None,
    version: str | None,
    limit: int,
    metadata: bool,
    as_json: bool,
    as_dot: bool,
    html: NewFile | None,
    column: str | None,
    rerun: bool,
    reason: str,
    dry_run: bool,
) -> None:
    """Show everything that was made from a version, or from a column of it.

    Directly or not; and which instances have to run again to make anew what is there of it. INSTANCE is a time,
    YYYY-MM-DDTHH:MMZ.
    """
    with open_installation() as installation:
        found = lineage_impact(installation, VersionQuery(feed, instance, cluster, version), column)
        if rerun:
            _rerun(installation, found, PlainRequest(None, reason, dry_run), as_json=as_json)
            return
        found = with_metadata(installation, found) if metadata else found
    if printed(found, as_json=as_json, as_dot=as_dot, html=html):
        return
    derived, again = found.derived, found.recompute
    source = "it" if column is None else f"its column {printable(column)}"
    verb = "was" if len(derived) == 1 else "were"
    click.echo(f"{named(found.version)}: {count_of(len(derived), 'version')} {verb} made from {source}")
    print_summary(versions_by_feed(derived), len(derived), limit, "version")
    for one in derived[:limit]:
        of = found.affected.get(one.number)
        click.echo(printable(f"  {named(one)}  {status(one)}{f': {of.words}' if of else ''}"))
    print_rest(len(derived), limit)
    if again:
        click.echo("to be run again for what is there:")
    print_summary(instances_by_process(again), len(again), limit, "instance")
    for entity, where, nominal in again[:limit]:
        click.echo(f"  {printable(entity)} {format_instant(nominal)} on {where}")
    print_rest(len(again), limit)
    print_written(found, limit)
    print_metadata(found)
    print_hidden(found)


def _rerun(installation: Installation, found: Impact, request: PlainRequest, *, as_json: bool) -> None:
    from falcon_assets.features.lineage.searching import rerun_impact  # noqa: PLC0415 - takes seconds

    done = rerun_impact(installation, found, request)
    if as_json:
        print_json(done.as_data())
        return
    for result in done.results:
        for item in (one.instance for one in result.items):
            click.echo(f"  {printable(item.entity)} {format_instant(item.instance)} on {item.cluster}")
        for note in result.notes:
            click.echo(f"    {note}")
    for why in done.left:
        click.echo(f"  left out: {printable(why)}")
    verb = "would be" if request.dry_run else "is" if done.changed == 1 else "are"
    click.echo(f"{count_of(done.changed, 'instance')} {verb} asked to run again")
