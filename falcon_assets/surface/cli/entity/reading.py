"""``falcon entity list|show|status|dependency|lookup``: nothing is changed."""

from __future__ import annotations

import click
from rich.table import Table
from rich.tree import Tree

from falcon_assets.features.entities.dependencies import DependencyTree, entity_dependencies
from falcon_assets.features.entities.listing import FIELDS, Entity, list_entities, show_entity
from falcon_assets.features.entities.lookup import FIELDS as LOOKUP_FIELDS
from falcon_assets.features.entities.lookup import PathOwner
from falcon_assets.features.entities.lookup import lookup as lookup_path
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import console, print_table, shown
from falcon_assets.surface.cli.entity.words import KIND, commanded_or_declared, moment
from falcon_assets.surface.cli.listing import list_options, print_json, query_of, say_rest

_COLORS = {"RUNNING": "green", "SUSPENDED": "yellow", "SUBMITTED": "default"}


@click.command("list")
@click.option("--kind", type=KIND, help="Only entities of that kind.")
@click.option("--text", help="Only those that have TEXT in name, description or tags.")
@list_options(FIELDS)
def list_(
    kind: str | None,
    text: str | None,
    filters: tuple[tuple[str, str], ...],
    sort: str | None,
    offset: int,
    limit: int | None,
    as_json: bool,
) -> None:
    """List clusters, feeds and processes: what runs by itself, since when, by a command or as declared.

    Of several filters with one field any may fit, of different fields all must:
    --filter status=RUNNING --filter tag=owner=analytics
    """
    wanted = (*filters, ("kind", kind)) if kind else filters
    with open_installation() as installation:
        found = list_entities(installation, query_of(wanted, sort, offset, limit), text)
    if as_json:
        print_json(found.as_data(Entity.as_data))
        return
    table = Table("kind")
    table.add_column("name", overflow="fold")
    for column in ("status", "since", "by"):
        table.add_column(column, no_wrap=True)
    for column in ("clusters", "pipelines", "owner"):
        table.add_column(column, overflow="fold")
    for one in found.items:
        status = f"[{_COLORS[one.status]}]{one.status}[/]"
        by = commanded_or_declared(one.commanded) if one.since else ""
        lists = (", ".join(one.clusters), ", ".join(one.pipelines), shown(one.owner or ""))
        table.add_row(one.kind, one.name, status, moment(one.since), by, *lists)
    print_table(table, nothing="no entity fits")
    say_rest(found)


@click.command()
@click.argument("name")
@click.option("--kind", type=KIND, help="Which one, where several have that name.")
@click.option("--json", "as_json", is_flag=True, help="Print the entity as JSON instead of its definition.")
def show(name: str, kind: str | None, as_json: bool) -> None:
    """Print the definition of NAME as it is stored, with its comments; values of storage options as stars."""
    with open_installation() as installation:
        if as_json:
            print_json(show_entity(installation, name, kind).as_data())
        else:
            # Imported here: the other commands need no YAML.
            from falcon_assets.features.entities.given import stored_definition  # noqa: PLC0415 - said above

            click.echo(stored_definition(installation, name, kind), nl=False)


@click.command()
@click.argument("name")
@click.option("--kind", type=KIND, help="Which one, where several have that name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(name: str, kind: str | None, as_json: bool) -> None:
    """Say whether NAME runs by itself: SUBMITTED, RUNNING or SUSPENDED; a cluster is always SUBMITTED."""
    with open_installation() as installation:
        one = show_entity(installation, name, kind)
    if as_json:
        print_json(one.as_data())
        return
    since = f", since {moment(one.since)}, {commanded_or_declared(one.commanded)}" if one.since else ""
    click.echo(f"{one.kind} {one.name} is {one.status}{since}")


@click.command()
@click.argument("name")
@click.option("--kind", type=KIND, help="Which one, where several have that name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def dependency(name: str, kind: str | None, as_json: bool) -> None:
    """Show what NAME needs, and what needs NAME, as trees."""
    with open_installation() as installation:
        needs, needed_by = entity_dependencies(installation, name, kind)
    if as_json:
        sides = {"needs": needs, "needed_by": needed_by}
        below = {side: [one.as_data() for one in tree.below] for side, tree in sides.items()}
        print_json({"kind": needs.kind, "name": needs.name, **below})
        return
    for title, tree in (("needs", needs), ("is needed by", needed_by)):
        shown = Tree(f"{tree.kind} [bold]{tree.name}[/] {title}" + ("" if tree.below else " nothing"))
        _grow(shown, tree)
        console().print(shown)


def _grow(shown: Tree, tree: DependencyTree) -> None:
    for one in tree.below:
        _grow(shown.add(f"{one.kind} {one.name} ({', '.join(one.roles)})"), one)


def _not_empty(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    if not text.strip():
        raise click.BadParameter("it is empty")
    return text


@click.command()
@click.option(
    "--path", required=True, callback=_not_empty, help="A path on a cluster (/raw/2013/01), of this machine, or a URL."
)
@list_options(LOOKUP_FIELDS)
def lookup(
    path: str, filters: tuple[tuple[str, str], ...], sort: str | None, offset: int, limit: int | None, as_json: bool
) -> None:
    """Say which feed, and which of its instances, PATH belongs to; it may be a file in it."""
    with open_installation() as installation:
        found = lookup_path(installation, path, query_of(filters, sort, offset, limit))
    if as_json:
        print_json(found.as_data(PathOwner.as_data))
        return
    for one in found.items:
        click.echo(f"{one.feed} on {one.cluster}: {one.location} of {format_instant(one.instance)}")
    if not found.items:
        click.echo(f"no instance of a feed has the path {path}")
    say_rest(found)
