"""``falcon lineage show|impact|path|diff``: which versions came from which."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TextIO

import click

from falcon_assets.cli.lineage.words import SHOWN, VERSION, made, named, status
from falcon_assets.cli.listing import print_json
from falcon_assets.cli.parameters import one_instance
from falcon_assets.errors import count_of, printable
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.auditing import PlainRequest
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.operations.lineage.asking import (
    Impact,
    Lineage,
    lineage_diff,
    lineage_impact,
    lineage_path,
    show_lineage,
)
from falcon_assets.operations.lineage.lifecycle import VersionLifecycle
from falcon_assets.operations.lineage.page import page_of
from falcon_assets.operations.lineage.subject import VersionQuery
from falcon_assets.planning.lineage.graph import Line, dot, tree

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON: nodes, and edges from input to output.")
_DOT = click.option("--dot", "as_dot", is_flag=True, help="Print the graph in the language of Graphviz.")
_HTML = click.option(
    "--html",
    metavar="FILE",
    type=click.File("w", encoding="ascii", lazy=True, atomic=True),
    help="Write one page for a browser, with the graph to pan, zoom, filter and click; it needs no network.",
)


def _about_a_version(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.argument("feed"),
        one_instance,
        click.option("--cluster", help="Where it is, if versions of it are on several clusters."),
        click.option("--version", help="Which version (default: the present one, else the last)."),
        _JSON,
        _DOT,
        _HTML,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@_about_a_version
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
    as_json: bool,
    as_dot: bool,
    html: TextIO | None,
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
    if _printed(found, as_json=as_json, as_dot=as_dot, html=html):
        return
    _details(found)
    if with_columns:
        _columns(found)
    for is_wanted, title, above in ((up, "came from", True), (down, "was made into", False)):
        if is_wanted:
            _tree(found, title, up=above, depth=depth)
    _hidden(found)


@click.command()
@_about_a_version
@click.option("--rerun", is_flag=True, help="Ask that what has to run again does, each after what it reads.")
@click.option("--reason", default="", help="With --rerun: why; it is recorded.")
@click.option("--dry-run", is_flag=True, help="With --rerun: only say what would change.")
def impact(
    feed: str,
    instance: datetime,
    cluster: str | None,
    version: str | None,
    as_json: bool,
    as_dot: bool,
    html: TextIO | None,
    rerun: bool,
    reason: str,
    dry_run: bool,
) -> None:
    """Show everything that was made from a version.

    Directly or not; and which instances have to run again to make anew what is there of it. INSTANCE is a time,
    YYYY-MM-DDTHH:MMZ.
    """
    with open_installation() as installation:
        found = lineage_impact(installation, VersionQuery(feed, instance, cluster, version))
        if rerun:
            _rerun(installation, found, PlainRequest(None, reason, dry_run), as_json=as_json)
            return
    if _printed(found, as_json=as_json, as_dot=as_dot, html=html):
        return
    derived, again = found.derived, found.recompute
    click.echo(f"{named(found.version)}: {count_of(len(derived), 'version')} were made from it")
    for one in derived:
        click.echo(f"  {named(one)}  {status(one)}")
    if again:
        click.echo("to be run again for what is there:")
    for entity, where, nominal in again:
        click.echo(f"  {printable(entity)} {format_instant(nominal)} on {where}")
    _hidden(found)


@click.command()
@click.argument("origin", metavar="FROM", type=VERSION)
@click.argument("result", metavar="TO", type=VERSION)
@_JSON
@_DOT
@_HTML
def path(origin: VersionQuery, result: VersionQuery, as_json: bool, as_dot: bool, html: TextIO | None) -> None:
    """Show how one version was made from another: all that lies between them.

    Both are written as [CLUSTER/]FEED/INSTANCE[@VERSION]. Exit code 1: TO was not made from FROM.
    """
    with open_installation() as installation:
        found = lineage_path(installation, origin, result)
    if _printed(found, as_json=as_json, as_dot=as_dot, html=html):
        return
    for one in (found.version, *found.derived):
        click.echo(f"{named(one)}  {status(one)}{made(one)}")
    _hidden(found)


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

    By their inputs, definition, workflow, columns and environment (Python, packages). INSTANCE is a time,
    YYYY-MM-DDTHH:MMZ.
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


def _rerun(installation: Installation, found: Impact, request: PlainRequest, *, as_json: bool) -> None:
    from falcon_assets.operations.lineage.recomputing import rerun_impact  # noqa: PLC0415 - takes seconds

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


def _printed(found: Lineage, *, as_json: bool, as_dot: bool, html: TextIO | None) -> bool:
    """Prints it for programs, or writes the page, if that is asked for."""
    if html:
        html.write(page_of(found))
    if as_json:
        print_json(found.as_data())
    elif as_dot:
        click.echo(dot(found.graph))
    return bool(as_json or as_dot or html)


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


def _columns(found: Lineage) -> None:
    if found.columns is None:
        click.echo("columns: not recorded")
        return
    click.echo("columns:")
    for one in found.columns:
        read = ", ".join(f"{source}.{column}" for source, column in one.inputs) or "nothing"
        unsure = "  (not sure: it passed through code that Spark does not look into)" if one.is_opaque else ""
        click.echo(f"  {printable(f'{one.name} {one.type} from {read}')}{unsure}")


def _lifecycle(found: VersionLifecycle) -> str:
    if found.set is None:
        return found.status
    return f"{found.status}, by {found.set.actor} on {format_instant(found.set.at)}: {found.set.reason}"


def _tree(found: Lineage, title: str, *, up: bool, depth: int | None) -> None:
    lines = list(tree(found.graph, found.version.number, up=up))
    nothing = "nothing: it landed from outside" if up and found.version.process is None else "nothing"
    click.echo(f"{title}:" if len(lines) > 1 else f"{title} {nothing}")
    for line in lines[1:]:
        click.echo(_line(line))
    if depth is not None and any(line.depth >= depth for line in lines):
        click.echo(f"(up to {count_of(depth, 'step')}; --depth shows more)")


def _line(line: Line) -> str:
    undeclared = "" if line.edge is None or line.edge.declared else "  (undeclared)"
    above = "  (see above)" if line.is_repeated else ""
    one = line.version
    return f"{'  ' * line.depth}{named(one)}  {status(one)}{made(one)}{undeclared}{above}"


def _hidden(found: Lineage) -> None:
    if found.hidden:
        click.echo(f"{count_of(found.hidden, 'version')} of feeds that you may not read are left out")
