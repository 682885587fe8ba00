"""``falcon validate``: are the entity definitions right?"""

from __future__ import annotations

from pathlib import Path

import click

from falcon_assets.catalog.store import load_entities
from falcon_assets.catalog.yaml_files.definition_files import is_definition_file
from falcon_assets.errors import InvalidDefinitionsError, count_of, listed_problems
from falcon_assets.settings import load_settings
from falcon_assets.surface.cli.parameters import ANY_PATH


@click.command()
@click.argument("place", metavar="[DIR|FILE]", required=False, type=ANY_PATH)
@click.option(
    "--strict", is_flag=True, help="Warnings are problems, but for SQL that only the parser does not understand."
)
@click.pass_context
def validate(ctx: click.Context, place: Path | None, strict: bool) -> None:
    """Check all entity definitions below DIR (default: FALCON_ENTITY_DEFS, else entity_defs).

    FILE is one of the definitions: with it all are checked that it belongs to, because they refer to each other. Those
    are the default folder's, where it lies in there, else those of its own folder.
    The files of workflows are parsed, too: statements, parameters and views of SQL, Python and its function; and so
    are the schemas of feeds. Nothing of that starts Spark.
    Prints every problem with its file, line and key, and then exits with 1. The code location fails to load with the
    same text. Warnings are printed too: what works and surprises. The code location loads with them, and the exit code
    is 0.
    """
    try:
        store = load_entities(_folder(place), strict=strict, programs=True)
    except InvalidDefinitionsError as error:
        click.echo(str(error))
        ctx.exit(1)
    for line in listed_problems(store.warnings):
        click.echo(line)
    counts = (count_of(len(store.clusters), "cluster"), count_of(len(store.feeds), "feed"))
    processes = count_of(len(store.processes), "process", "processes")
    warnings = f", {count_of(len(store.warnings), 'warning')}" if store.warnings else ""
    click.echo(f"{', '.join(counts)}, {processes}: no problems{warnings}")


def _folder(place: Path | None) -> Path:
    """The folder of the definitions that ``place`` names, or belongs to."""
    if place is not None and not (place.is_file() and is_definition_file(place)):
        return place
    default = load_settings().entity_defs
    return default if place is None or place.resolve().is_relative_to(default.resolve()) else place.parent
