"""``falcon run``: what the sensors do, in the foreground, until nothing can run any more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import click

from falcon_assets.base.texts import visible
from falcon_assets.errors import count_of
from falcon_assets.operations.installation import open_installation
from falcon_assets.operations.machine import require_machine
from falcon_assets.surface.cli.console import console
from falcon_assets.surface.cli.parameters import INSTANT
from falcon_assets.surface.cli.quiet import output_to
from falcon_assets.surface.cli.run_display import shown_on, tell
from falcon_assets.surface.cli.shutdown import ends_in_time
from falcon_assets.surface.foreground.foreground import ForegroundResult
from falcon_assets.surface.foreground.foreground_runs import Display
from falcon_assets.surface.foreground.run import abandon, run_ready

_INTERRUPTED = "Interrupted: what was finished is recorded, the rest runs the next time."


@click.command()
@click.option("--until", type=INSTANT, help="Leave out instances after this one (2013-01-08T00:00Z).")
@click.option(
    "--pipeline",
    "pipeline",
    metavar="NAME",
    help="Only this pipeline; the replications to CLUSTER are CLUSTER.replication.",
)
@click.option("--process", "process", metavar="NAME", help="Only this process.")
def run(until: datetime | None, pipeline: str | None, process: str | None) -> None:
    """Run everything whose time and inputs have come, in this process, until nothing is ready any more.

    Finds data that landed, runs scheduled processes and replications in the order of their inputs, waits for
    retries, and ends when what is left waits for data. What cannot be reached or read is left out and named. The
    exit code is 1 where something was left out, or an instance failed or timed out for good.
    """
    with ends_in_time(_INTERRUPTED, abandon):
        try:
            outcome = _run(until, pipeline, process)
        except KeyboardInterrupt:
            click.echo(_INTERRUPTED)
            sys.exit(130)
    for what, why in outcome.left_out.items():
        click.echo(visible(f"Error: {what} was left out: {why}"), err=True)
    if not outcome.is_whole:
        sys.exit(1)


def _run(until: datetime | None, pipeline: str | None, process: str | None) -> ForegroundResult:
    @contextmanager
    def shown() -> Iterator[Display]:
        log = installation.settings.home / "run.log"
        with output_to(log) as terminal, shown_on(console(terminal)) as display:
            yield display

    with open_installation() as installation:
        require_machine(installation.settings.environ, installation.settings.home)
        outcome = run_ready(installation, shown, until=until, pipeline=pipeline, process=process)
    told = console()
    tell(told, outcome)
    told.print(f"{count_of(outcome.succeeded, 'instance')} succeeded, {len(outcome.trouble)} did not")
    return outcome
