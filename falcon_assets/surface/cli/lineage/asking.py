"""``falcon lineage show|path|diff``: which versions came from which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.features.lineage.asking import DiffVersions, Lineage, LineagePath, ShowLineage
from falcon_assets.features.lineage.difference import Difference
from falcon_assets.features.lineage.graph import Line, tree, versions_by_feed
from falcon_assets.features.lineage.lifecycle_operations import VersionLifecycle
from falcon_assets.features.lineage.places import of_versions
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.planning.version_columns import Source
from falcon_assets.surface.cli.declared import command, command_of
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
from falcon_assets.surface.cli.lineage.words import SHOWN, made, named, status
from falcon_assets.surface.cli.parameters import NewFile


@command_of(ShowLineage, JSON)
@graph_options
@click.option(
    "--columns", "with_columns", is_flag=True, help="Show the columns, and the columns that each was made from."
)
def show(asked: ShowLineage, limit: int, as_json: bool, as_dot: bool, html: NewFile | None, with_columns: bool) -> None:
    if asked.depth is None and not (as_json or as_dot or html):
        asked = asked.model_copy(update={"depth": 5})
    with open_installation() as installation:
        found = asked.run(installation)
    if printed(found, as_json=as_json, as_dot=as_dot, html=html):
        return
    up, down, depth = asked.direction != "down", asked.direction != "up", asked.depth
    _details(found)
    if with_columns:
        _columns(found)
    by_version = of_versions(found.places, lambda one: not one.is_written)
    for is_wanted, title, above in ((up, "came from", True), (down, "was made into", False)):
        if is_wanted:
            _tree(found, title, by_version if above else {}, up=above, depth=depth, limit=limit)
    print_datasets(found, limit)
    print_written(found, limit)
    print_metadata(found)
    print_hidden(found)


@command_of(LineagePath, JSON)
@graph_options
def path(asked: LineagePath, limit: int, as_json: bool, as_dot: bool, html: NewFile | None) -> None:
    with open_installation() as installation:
        found = asked.run(installation)
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


def _show_difference(found: Difference) -> None:
    for sign, one in (("-", found.before), ("+", found.after)):
        click.echo(f"{sign} {named(one)}  {status(one)}{made(one)}")
    for cause in found.causes or ["nothing that is recorded differs except the run"]:
        click.echo(f"  {printable(cause)}")
    for changed in found.inputs:
        where, name, at = changed.place
        sides = (", ".join(one[:SHOWN] for one in side) or "nothing" for side in (changed.before, changed.after))
        click.echo(f"    {name} {format_instant(at)} on {where}: {' -> '.join(map(printable, sides))}")


diff = command(DiffVersions, _show_difference)


def _details(found: Lineage) -> None:
    one = found.version
    click.echo(f"{named(one)}  {status(one)}{made(one)}")
    fields = {
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
    for name, value in fields.items():
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
