"""``falcon import``: definitions of others, as entities in YAML."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from falcon_assets.catalog.yaml_files.definition_files import shown_path
from falcon_assets.errors import count_of, printable
from falcon_assets.features.falcon_xml.operations import ImportResult, InvalidImportError, as_warning, import_here
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.parameters import ANY_PATH


@click.group(name="import", cls=FullHelpGroup)
def import_() -> None:
    """Turn definitions of Apache Falcon into entities in YAML."""


@import_.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=ANY_PATH)
@click.option(
    "--into",
    metavar="DIR",
    type=ANY_PATH,
    help="The folder of the definitions (default: FALCON_ENTITY_DEFS, else entity_defs).",
)
@click.option("--json", "as_json", is_flag=True, help="Print entities and warnings as JSON.")
def xml(paths: tuple[Path, ...], into: Path | None, as_json: bool) -> None:
    """Import Falcon's cluster, feed and process XML: files, or all *.xml below folders.

    What has no counterpart here, or is changed, is listed with its line, and kept as a comment. Programs that stand for
    workflows of Oozie, Pig and Hive fail with a sentence. All files are written, or none.

    Where DIR has definitions already, new ones are written only if "falcon validate" has no problems with all of them
    together. Where it has none, they are written with their problems, which are listed; the exit code is 1 then.
    """
    with open_installation() as installation:
        result = import_here(installation, paths, into)
        folder = into or installation.settings.entity_defs
    if as_json:
        told = [*result.warnings, *map(as_warning, result.problems)]
        shown = {"entities": list(map(asdict, result.entities)), "warnings": list(map(asdict, told))}
        click.echo(json.dumps(shown, indent=2))
    else:
        _print(result, shown_path(folder))
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
