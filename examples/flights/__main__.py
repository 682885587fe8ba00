"""The commands of the example: ``python -m examples.flights --help``."""

from __future__ import annotations

import click

from falcon_assets.surface.cli.main import LazyGroup, main

COMMANDS = {
    "demo": "Land real flights, run the processes over them, show what was produced.",
    "live": "Land hour by hour, as FALCON_CLOCK reaches them.",
    "up": "Start Dagster, with flights that land in time lapse.",
}


@click.group(cls=LazyGroup, package=__package__, table=COMMANDS)
def flights() -> None:
    """Flights and weather of New York in 2013, through the pipelines of entity_defs."""


main(flights)
