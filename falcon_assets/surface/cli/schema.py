"""``falcon schema``: the definitions' JSON Schema, for editors."""

from __future__ import annotations

import json

import click

from falcon_assets.catalog.json_schema import entity_schema
from falcon_assets.model.entity import KINDS

_HELP = """Print the JSON Schema of any entity definition, or of those of one KIND.

Editors complete and check YAML with it. Write it to a file:

\b
    falcon schema > entity_defs/.schema.json

and name it in the first line of each definition file, which the YAML extensions of VS Code, Neovim, Emacs and
JetBrains' editors understand (the path is relative to the file):

\b
    # yaml-language-server: $schema=../.schema.json

or for all files at once in VS Code's settings:

\b
    "yaml.schemas": {"entity_defs/.schema.json": "entity_defs/**/*.yaml"}
"""


@click.command(help=_HELP)
@click.argument("kind", required=False, type=click.Choice(list(KINDS)))
def schema(kind: str | None) -> None:
    """Prints the JSON Schema of any entity definition, or of those of one kind."""
    click.echo(json.dumps(entity_schema(kind), indent=2, ensure_ascii=False))
