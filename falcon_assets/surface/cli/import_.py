"""``falcon import``: definitions of others, as entities in YAML."""

from __future__ import annotations

from functools import partial

import click

from falcon_assets.catalog.yaml_files.definition_files import shown_path
from falcon_assets.errors import count_of, printable
from falcon_assets.features.falcon_xml.operations import ImportResult, ImportXml, InvalidImportError
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.declared import command_of, perform
from falcon_assets.surface.cli.help import FullHelpGroup


@click.group(name="import", cls=FullHelpGroup)
def import_() -> None:
    """Convert definitions of Apache Falcon to YAML."""


@import_.add_command
@command_of(ImportXml, "Print entities and warnings as JSON.")
def xml(asked: ImportXml, as_json: bool) -> None:
    with open_installation() as installation:
        result = asked.run(installation)
        folder = asked.into or installation.settings.entity_defs
    perform(result, partial(_print, folder=shown_path(folder)), as_json=as_json)
    if result.problems:
        listed = "\n".join(map(str, result.problems))
        raise InvalidImportError(f"{listed}\n{count_of(len(result.problems), 'problem')} in what was imported")


def _print(result: ImportResult, folder: str) -> None:
    for warning in result.warnings:
        click.echo(printable(str(warning)))
    there = len(result.entities) - result.written
    said = f"{count_of(result.written, 'entity', 'entities')} imported into {folder}"
    if there:
        said += f", {there} already there, just so"
    click.echo(f"{said}; {count_of(len(result.warnings), 'warning')}")
    if result.reload:
        click.echo(result.reload)
