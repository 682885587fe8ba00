"""``falcon schema``: the definitions' JSON Schema, for editors."""

from __future__ import annotations

import json
from typing import Any

import click

from falcon_assets.operations.definitions import PrintSchema
from falcon_assets.surface.cli.declared import command


def _print(found: dict[str, Any]) -> None:
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))


schema = command(PrintSchema, _print, "")
