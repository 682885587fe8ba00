"""``falcon validate``: are the entity definitions right?"""

from __future__ import annotations

import click

from falcon_assets.errors import InvalidDefinitionsError, count_of, listed_problems
from falcon_assets.model.entity import counted
from falcon_assets.operations.definitions import ValidateDefinitions, Validation
from falcon_assets.surface.cli.declared import command


def _show(found: Validation) -> None:
    if found.failed:
        click.echo(str(InvalidDefinitionsError(found.problems)))
        return
    for line in listed_problems(found.problems):
        click.echo(line)
    warnings = f", {count_of(len(found.problems), 'warning')}" if found.problems else ""
    click.echo(f"{counted(found.entities)}: no problems{warnings}")


validate = command(ValidateDefinitions, _show)
