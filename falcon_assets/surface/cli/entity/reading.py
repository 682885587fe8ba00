"""``falcon entity list|show|status|summary|dependency|lookup``: nothing is changed."""

from __future__ import annotations

from itertools import groupby

import click
from rich.table import Table
from rich.tree import Tree

from falcon_assets.features.entities import questions
from falcon_assets.features.entities.dependencies import Dependencies, DependencyTree
from falcon_assets.features.entities.listing import Entity
from falcon_assets.features.entities.lookup import PathOwner
from falcon_assets.features.entities.summary import EntitySummary
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.operations.paging import Page
from falcon_assets.surface.cli.console import console, print_table, shown
from falcon_assets.surface.cli.declared import command, command_of
from falcon_assets.surface.cli.entity.words import commanded_or_declared, moment
from falcon_assets.surface.cli.listing import print_json, say_rest
from falcon_assets.surface.cli.server import server
from falcon_assets.surface.cli.states import colored

_COLORS = {"RUNNING": "green", "SUSPENDED": "yellow", "SUBMITTED": "default"}


def _show_list(found: Page[Entity]) -> None:
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


@command_of(questions.ShowEntity, "Print the entity as JSON instead of its definition.")
def show(asked: questions.ShowEntity, as_json: bool) -> None:
    with open_installation() as installation:
        if as_json:
            print_json(asked.run(installation).as_data())
        elif there := server():
            click.echo(there.definition(asked.name, asked.kind), nl=False)
        else:
            # Imported here: the other commands need no YAML.
            from falcon_assets.features.entities.given import stored_definition  # noqa: PLC0415 - said above

            click.echo(stored_definition(installation, asked.name, asked.kind), nl=False)


def _show_status(one: Entity) -> None:
    since = f", since {moment(one.since)}, {commanded_or_declared(one.commanded)}" if one.since else ""
    click.echo(f"{one.kind} {one.name} is {one.status}{since}")


def _show_dependencies(found: Dependencies) -> None:
    for title, tree in (("needs", found.needs), ("is needed by", found.needed_by)):
        shown = Tree(f"{tree.kind} [bold]{tree.name}[/] {title}" + ("" if tree.below else " nothing"))
        _grow(shown, tree)
        console().print(shown)


def _grow(shown: Tree, tree: DependencyTree) -> None:
    for one in tree.below:
        _grow(shown.add(f"{one.kind} {one.name} ({', '.join(one.roles)})"), one)


def _show_owners(found: Page[PathOwner]) -> None:
    for one in found.items:
        click.echo(f"{one.feed} on {one.cluster}: {one.location} of {format_instant(one.instance)}")
    if not found.items:
        path = click.get_current_context().params["path"]
        click.echo(f"no instance of a feed has the path {path}")
    say_rest(found)


list_ = command(questions.ListEntities, _show_list)
status = command(questions.ShowEntityStatus, _show_status)
dependency = command(questions.EntityDependencies, _show_dependencies)
lookup = command(questions.LookUpPath, _show_owners)


def _show_summary(found: Page[EntitySummary]) -> None:
    table = Table("kind")
    table.add_column("name", overflow="fold")
    for column in ("status", "cluster", "latest"):
        table.add_column(column, no_wrap=True)
    table.add_column("states, the latest first", overflow="fold")
    for one in found.items:
        of_clusters = groupby(one.instances, key=lambda instance: instance.cluster)
        for where, instances in [(where, list(those)) for where, those in of_clusters] or [("", [])]:
            latest = format_instant(instances[0].instance) if instances else ""
            states = " ".join(colored(instance.state.value) for instance in instances)
            entity = (one.entity.kind, shown(one.entity.name), one.entity.status)
            table.add_row(*entity, shown(where), latest, states or "none is due")
    print_table(table, nothing="no entity fits")
    say_rest(found)


summary = command(questions.SummarizeEntities, _show_summary)
