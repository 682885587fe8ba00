"""``falcon template``: entities from templates, and the templates themselves."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.table import Table

from falcon_assets.errors import listed_problems
from falcon_assets.features.entities.results import OperationResult
from falcon_assets.features.templates.new_template import NewTemplate, NewTemplateResult
from falcon_assets.features.templates.operations import (
    ListedTemplates,
    ListTemplates,
    Rendered,
    RenderTemplate,
    ShowTemplate,
    SubmitTemplate,
    TemplateDetails,
    UpdateFromTemplate,
)
from falcon_assets.features.templates.uses import MadeEntity
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.entity.changing import show_change
from falcon_assets.surface.cli.help import FullHelpGroup


@click.group(cls=FullHelpGroup)
def template() -> None:
    """Make entities from templates; manage templates."""


def _show_list(found: ListedTemplates) -> None:
    table = Table("template", "version", "entities", "owner")
    table.add_column("description", overflow="fold")
    for one in found.items:
        table.add_row(shown(one.name), str(one.version), str(one.entities), shown(one.owner), shown(one.description))
    print_table(table, nothing="there are no templates")
    for line in listed_problems(found.problems):
        click.echo(line, err=True)


def _show_template(one: TemplateDetails) -> None:
    click.echo(f"{one.name} version {one.version} ({one.file}){f', of {one.owner}' if one.owner else ''}")
    click.echo(one.description)
    table = Table("parameter", "type", "default")
    table.add_column("description", overflow="fold")
    for said in one.parameters:
        default = "required" if said.required else "" if said.default is None else str(said.default)
        table.add_row(shown(said.name), said.type, shown(default), shown(said.description))
    print_table(table, nothing="it has no parameters")
    _show_made(one.entities)


def _show_made(entities: Sequence[MadeEntity]) -> None:
    for made in entities:
        click.echo(f"{made.kind} {made.name} is made from version {made.version}")


def _show_rendered(found: Rendered) -> None:
    click.echo(found.definitions, nl=False)


def _show_new(found: NewTemplateResult) -> None:
    done = "is unchanged" if not found.changed else "would be written" if found.dry_run else "is written"
    click.echo(f"template {found.name} {done} ({found.file})")
    _show_made(found.outdated)
    if found.outdated:
        click.echo(f"falcon template update {found.name} would change them: see --dry-run")


def _show_update(result: OperationResult) -> None:
    show_change(result)
    if not result.entities:
        click.echo("no entity was made from it")


template.add_command(command(ListTemplates, _show_list))
template.add_command(command(ShowTemplate, _show_template))
template.add_command(command(NewTemplate, _show_new))
template.add_command(command(RenderTemplate, _show_rendered))
template.add_command(command(SubmitTemplate, show_change))
template.add_command(command(UpdateFromTemplate, _show_update))
