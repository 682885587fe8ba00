"""``falcon lineage impact``: what was made from a version or a column, and has to be made again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.features.lineage.asking import Impact, ImpactOfVersion
from falcon_assets.features.lineage.graph import instances_by_process, versions_by_feed
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.declared import command_of, perform
from falcon_assets.surface.cli.lineage.graphs import (
    JSON,
    graph_options,
    print_datasets,
    print_hidden,
    print_metadata,
    print_rest,
    print_summary,
    print_written,
    printed,
)
from falcon_assets.surface.cli.lineage.words import named, status
from falcon_assets.surface.cli.parameters import NewFile

if TYPE_CHECKING:
    from falcon_assets.features.lineage.searching import Recomputed  # takes seconds


@command_of(ImpactOfVersion, JSON)
@graph_options
def impact(asked: ImpactOfVersion, limit: int, as_json: bool, as_dot: bool, html: NewFile | None) -> None:
    with open_installation() as installation:
        found = asked.run(installation)
    if not isinstance(found, Impact):
        perform(found, partial(_show_reruns, dry_run=asked.dry_run), as_json=as_json)
        return
    if printed(found, as_json=as_json, as_dot=as_dot, html=html):
        return
    column = asked.column
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
    print_datasets(found, limit)
    print_written(found, limit)
    print_metadata(found)
    print_hidden(found)


def _show_reruns(done: Recomputed, *, dry_run: bool) -> None:
    for result in done.results:
        for item in (one.instance for one in result.items):
            click.echo(f"  {printable(item.entity)} {format_instant(item.instance)} on {item.cluster}")
        for note in result.notes:
            click.echo(f"    {note}")
    for why in done.left:
        click.echo(f"  left out: {printable(why)}")
    verb = "would be" if dry_run else "is" if done.changed == 1 else "are"
    click.echo(f"{count_of(done.changed, 'instance')} {verb} asked to run again")
