"""``falcon lineage show|path|diff``: which versions came from which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.features.lineage.asking import Lineage, lineage_diff, lineage_path, show_lineage, with_metadata
from falcon_assets.features.lineage.graph import Line, tree, versions_by_feed
from falcon_assets.features.lineage.lifecycle_operations import VersionLifecycle
from falcon_assets.features.lineage.places import of_versions
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.planning.version_columns import Source
from falcon_assets.surface.cli.lineage.graphs import (
    DOT,
    HTML,
    JSON,
    LIMIT,
    METADATA,
    about_a_version,
    print_hidden,
    print_metadata,
    print_rest,
    print_summary,
    print_written,
    printed,
)
from falcon_assets.surface.cli.lineage.words import SHOWN, VERSION, made, named, status
from falcon_assets.surface.cli.listing import print_json
from falcon_assets.surface.cli.parameters import NewFile, one_instance


@click.command()
@about_a_version
@click.option(
    "--direction",
    type=click.Choice(["up", "down", "both"]),
    default="up",
    show_default=True,
    help="up: what it came from; down: what was made from it.",
)
@click.option(
    "--depth", type=click.IntRange(1, 100), help="Over how many steps; without it all, and as a tree 5 (at most 100)."
)
@click.option("--columns", "with_columns", is_flag=True, help="Show its columns, and from which each was made.")
def show(
    feed: str,
    instance: datetime,
    cluster: str | None,
    version: str | None,
    limit: int,
    metadata: bool,
    as_json: bool,
    as_dot: bool,
    html: NewFile | None,
    direction: str,
    depth: int | None,
    with_columns: bool,
) -> None:
    """Show what a version of an instance came from.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ.
    """
    if depth is None and not (as_json or as_dot or html):
        depth = 5
    with open_installation() as installation:
        query = VersionQuery(feed, instance, cluster, version)
        up, down = direction != "down", direction != "up"
        found = show_lineage(installation, query, up=up, down=down, depth=depth)
        found = with_metadata(installation, found) if metadata else found
    if printed(found, as_json=as_json, as_dot=as_dot, html=html):
        return
    _details(found)
    if with_columns:
        _columns(found)
    by_version = of_versions(found.places, lambda one: not one.is_written)
    for is_wanted, title, above in ((up, "came from", True), (down, "was made into", False)):
        if is_wanted:
            _tree(found, title, by_version if above else {}, up=above, depth=depth, limit=limit)
    print_written(found, limit)
    print_metadata(found)
    print_hidden(found)


@click.command()
@click.argument("origin", metavar="FROM", type=VERSION)
@click.argument("result", metavar="TO", type=VERSION)
@LIMIT
@METADATA
@JSON
@DOT
@HTML
def path(
    origin: VersionQuery,
    result: VersionQuery,
    limit: int,
    metadata: bool,
    as_json: bool,
    as_dot: bool,
    html: NewFile | None,
) -> None:
    """Show how one version was made from another: all that lies between them.

    Both are written as [CLUSTER/]FEED/INSTANCE[@VERSION]. Exit code 1: TO was not made from FROM.
    """
    with open_installation() as installation:
        found = lineage_path(installation, origin, result)
        found = with_metadata(installation, found) if metadata else found
    if printed(found, as_json=as_json, as_dot=as_dot, html=html):
        return
    several = (found.version, *found.derived)
    print_summary(versions_by_feed(several), len(several), limit, "version")
    for one in several[:limit]:
        click.echo(f"{named(one)}  {status(one)}{made(one)}")
    print_rest(len(several), limit)
    print_written(found, limit)
    print_metadata(found)
    print_hidden(found)


@click.command()
@click.argument("feed")
@one_instance
@click.option("--cluster", help="Where it is, if versions of it are on several clusters.")
@click.option("--from", "before", metavar="VERSION", help="One version (default: the one before the other).")
@click.option("--to", "after", metavar="VERSION", help="The other (default: the present one, else the last).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff(
    feed: str, instance: datetime, cluster: str | None, before: str | None, after: str | None, as_json: bool
) -> None:
    """Show why two versions of an instance differ.

    By their inputs, the definitions of the process, its cluster and the feeds, with the keys that differ; workflow,
    columns and environment (Python, packages). INSTANCE is a time, YYYY-MM-DDTHH:MMZ.
    """
    with open_installation() as installation:
        found = lineage_diff(installation, VersionQuery(feed, instance, cluster), before, after)
    if as_json:
        print_json(found.as_data())
        return
    for sign, one in (("-", found.before), ("+", found.after)):
        click.echo(f"{sign} {named(one)}  {status(one)}{made(one)}")
    for cause in found.causes or ["nothing that is recorded differs, but the run"]:
        click.echo(f"  {printable(cause)}")
    for changed in found.inputs:
        where, name, at = changed.place
        sides = (", ".join(one[:SHOWN] for one in side) or "nothing" for side in (changed.before, changed.after))
        click.echo(f"    {name} {format_instant(at)} on {where}: {' -> '.join(map(printable, sides))}")


def _details(found: Lineage) -> None:
    one = found.version
    click.echo(f"{named(one)}  {status(one)}{made(one)}")
    told = {
        "version": one.version,
        "lifecycle status": _lifecycle(found.lifecycle),
        "code": found.code.code if found.code else None,
        "run": one.run_id,
        "attempt": one.attempt,
        "user": one.made_by,
        "capture": one.capture,
        "environment": one.environment and ", ".join(f"{name} {of}" for name, of in one.environment.items()),
        "path": one.path,
        "records": one.records,
        "bytes": one.bytes,
        "since": one.seen_at and one.seen_at.isoformat(timespec="seconds"),
        "until": one.ended_at and one.ended_at.isoformat(timespec="seconds"),
        "restored by": one.restored_by,
        "kept at": one.kept_at,
        "archived to": one.archived_to,
    }
    for name, value in told.items():
        if value is not None:
            click.echo(f"  {name}: {printable(str(value))}")
    for warning in one.warnings:
        click.echo(f"  warning: {printable(warning)}")
    for place in one.writes:
        click.echo(f"  also wrote: {printable(place)}  of no feed  (undeclared)")


def _columns(found: Lineage) -> None:
    columns = found.columns_of(found.version)
    if columns is None:
        click.echo("columns: not recorded")
        return
    click.echo("columns:")
    for one in columns.each:
        unsure = "  (not sure: it passed through code that Spark does not look into)" if one.is_opaque else ""
        click.echo(f"  {printable(f'{one.name} {one.type} from {_sources(one.inputs)}')}{unsure}")
    if columns.rows_from is not None:
        more = ", and perhaps more" if columns.are_rows_opaque else ""
        click.echo(printable(f"rows are decided by: {_sources(columns.rows_from)}{more}"))


def _sources(sources: Sequence[Source]) -> str:
    return ", ".join(f"{feed}.{column}" for feed, column in sources) or "nothing"


def _lifecycle(found: VersionLifecycle) -> str:
    if found.set is None:
        return found.status
    return f"{found.status}, by {found.set.actor} on {format_instant(found.set.at)}: {found.set.reason}"


def _tree(
    found: Lineage, title: str, places: Mapping[int, Sequence[str]], *, up: bool, depth: int | None, limit: int
) -> None:
    lines = list(tree(found.past_places, found.version.number, up=up))
    nothing = "nothing: it landed from outside" if up and found.version.process is None else "nothing"
    click.echo(f"{title}:" if len(lines) > 1 or places else f"{title} {nothing}")
    several = {line.version.number: line.version for line in lines[1:]}
    print_summary(versions_by_feed(several.values()), len(lines) - 1, limit, "version")
    for line in lines[: limit + 1]:
        if line.depth:
            click.echo(_line(line))
        for place in () if line.is_repeated else places.get(line.version.number, ()):
            click.echo(f"{'  ' * (line.depth + 1)}{printable(place)}  of no feed  (undeclared)")
    print_rest(len(lines) - 1, limit)
    if depth is not None and any(line.depth >= depth for line in lines):
        click.echo(f"(up to {count_of(depth, 'step')}; --depth shows more)")


def _line(line: Line) -> str:
    undeclared = "" if line.edge is None or line.edge.declared else "  (undeclared)"
    above = "  (see above)" if line.is_repeated else ""
    one = line.version
    return f"{'  ' * line.depth}{named(one)}  {status(one)}{made(one)}{undeclared}{above}"
