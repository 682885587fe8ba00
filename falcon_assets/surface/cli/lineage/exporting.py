"""``falcon lineage export``: lineage for other systems."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from falcon_assets.features.openlineage.operations import ExportLineage
from falcon_assets.surface.cli.declared import command


def _print(events: Iterable[dict[str, Any]]) -> None:
    for event in events:
        click.echo(json.dumps(event))


export = command(ExportLineage, _print, "")
