"""Options of commands about a graph of versions, and the forms in which they print it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.features.lineage.asking import Lineage
from falcon_assets.features.lineage.graph import Several, dot
from falcon_assets.features.lineage.page import page_of
from falcon_assets.features.lineage.places import WITH, of_versions, place_id
from falcon_assets.surface.cli.lineage.words import named
from falcon_assets.surface.cli.listing import print_json
from falcon_assets.surface.cli.parameters import NEW_FILE, NewFile

JSON = "Print JSON: nodes, and edges from input to output."
_DOT = click.option("--dot", "as_dot", is_flag=True, help="Print the graph in Graphviz's DOT format.")
_HTML = click.option(
    "--html",
    metavar="FILE",
    type=NEW_FILE,
    help="Write the graph to an interactive HTML page that works offline.",
)
_LIMIT = click.option(
    "--limit",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Maximum number of lines, followed by totals by feed; does not apply to --json, --dot and --html.",
)


def graph_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of commands that print a graph."""
    return _LIMIT(_DOT(_HTML(command)))


def printed(found: Lineage, *, as_json: bool, as_dot: bool, html: NewFile | None) -> bool:
    """Prints it for programs, or writes the page, if that is asked for."""
    if html:
        html.write(page_of(found))
    if as_json:
        print_json(found.as_data())
    elif as_dot:
        relations = [(one.source, one.target.id, one.label) for one in found.metadata]
        relations += [(one.source, one.target, WITH) for one in found.places if one.is_relation]
        places = [(one.source, one.target, one.process) for one in found.outside if not one.is_relation]
        folders = {place_id(one.place) for one in found.places} | {one.id for one in found.datasets}
        click.echo(dot(found.graph, relations, places, folders))
    return bool(as_json or as_dot or html)


def print_summary(several: Sequence[Several], count: int, limit: int, one: str) -> None:
    """Prints what there is of many; nothing where all of them are printed."""
    if count > limit:
        for line in several:
            click.echo(f"  {printable(line.words(one))}")


def print_rest(count: int, limit: int) -> None:
    """Says how many lines are left out."""
    if count > limit:
        click.echo(f"  ... and {count - limit:,} more: --limit shows more of them, --json all")


def print_metadata(found: Lineage) -> None:
    """Prints the relations of the version itself and of all entities, if that was asked for."""
    if not found.metadata:
        return
    versions = {one.id for one in found.graph.versions.values()}
    for one in sorted(found.metadata, key=lambda one: one.source != found.version.id):
        if one.source == found.version.id or one.source not in versions:
            click.echo(printable(f"  {one.source} {one.label} {one.target.id}"))


def print_written(found: Lineage, limit: int) -> None:
    """Prints what the runs wrote besides that made its versions; not of the version itself."""
    written = of_versions(found.places, lambda one: one.is_written and one.version != found.version.number)
    if written:
        click.echo("their runs also wrote what is of no feed:")
    every = [(place, number) for number, places in written.items() for place in places]
    for place, number in every[:limit]:
        click.echo(f"  {printable(place)}  by {named(found.graph.versions[number])}  (undeclared)")
    print_rest(len(every), limit)


def print_datasets(found: Lineage, limit: int) -> None:
    """Prints what imports made versions from, and where versions were sent."""
    for is_sent, title in ((False, "imported from"), (True, "sent to")):
        several = [one for one in found.datasets if one.is_sent is is_sent]
        if several:
            click.echo(f"{title}:")
        for one in several[:limit]:
            click.echo(printable(f"  {one}  {named(found.graph.versions[one.number])}"))
        print_rest(len(several), limit)


def print_hidden(found: Lineage) -> None:
    """Says how many versions are left out because the user may not read them."""
    if found.hidden:
        click.echo(f"{count_of(found.hidden, 'version')} of feeds that you may not read are left out")
