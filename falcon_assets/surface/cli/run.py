"""``falcon run``: what the sensors do, in the foreground, until nothing can run any more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from falcon_assets.base.texts import visible
from falcon_assets.errors import count_of
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import console
from falcon_assets.surface.cli.declared import command_of
from falcon_assets.surface.cli.quiet import output_to
from falcon_assets.surface.cli.run_display import show_outcome, shown_on
from falcon_assets.surface.cli.shutdown import ends_in_time
from falcon_assets.surface.foreground.foreground import ForegroundResult
from falcon_assets.surface.foreground.foreground_runs import Display
from falcon_assets.surface.foreground.run import RunReady, abandon

_INTERRUPTED = "Interrupted: finished instances are recorded, the others run the next time."


@command_of(RunReady, "")
def run(asked: RunReady, as_json: bool) -> None:
    with ends_in_time(_INTERRUPTED, abandon):
        try:
            outcome = _run(asked)
        except KeyboardInterrupt:
            click.echo(_INTERRUPTED)
            sys.exit(130)
    for what, why in outcome.left_out.items():
        click.echo(visible(f"Error: {what} was left out: {why}"), err=True)
    if not outcome.is_whole:
        sys.exit(1)


def _run(asked: RunReady) -> ForegroundResult:
    @contextmanager
    def shown() -> Iterator[Display]:
        log = installation.settings.home / "run.log"
        with output_to(log) as terminal, shown_on(console(terminal)) as display:
            yield display

    with open_installation() as installation:
        outcome = asked.run(installation, shown)
    printer = console()
    show_outcome(printer, outcome)
    printer.print(f"{count_of(outcome.succeeded, 'instance')} succeeded, {len(outcome.trouble)} did not")
    return outcome
