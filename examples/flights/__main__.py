"""The commands of the example: ``python -m examples.flights --help``."""

from __future__ import annotations

from importlib import import_module

import click

from falcon_assets.surface.cli.main import main

COMMANDS = ("demo", "live", "up")


class _Commands(click.Group):
    """A group whose commands, each in the module of its name, are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"{__package__}.{cmd_name}"), cmd_name)
        return command


@click.group(cls=_Commands)
def flights() -> None:
    """Flights and weather of New York in 2013, through the pipelines of entity_defs."""


main(flights)
