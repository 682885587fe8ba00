"""``falcon validate``: are the entity definitions right?"""

from __future__ import annotations

from pathlib import Path

import click

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError
from falcon_assets.settings import load_settings


@click.command()
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.pass_context
def validate(ctx: click.Context, folder: Path | None) -> None:
    """Check all entity definitions below DIR (default: FALCON_ENTITY_DEFS, else entity_defs).

    Prints every problem with its file, line and key, and then exits with 1. The code location fails to load with the
    same text.
    """
    try:
        store = load_entities(folder or load_settings().entity_defs)
    except InvalidDefinitionsError as error:
        click.echo(str(error))
        ctx.exit(1)
    counts = (_count(len(store.clusters), "cluster"), _count(len(store.feeds), "feed"))
    processes = _count(len(store.processes), "process", "processes")
    click.echo(f"{', '.join(counts)}, {processes}: no problems")


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
