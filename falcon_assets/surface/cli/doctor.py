"""``falcon doctor``: what is wrong with this installation, and what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime

import click

from falcon_assets.doctor.check import Severity
from falcon_assets.doctor.examination import CHECKS, CheckResult, examine, is_well
from falcon_assets.errors import count_of
from falcon_assets.operations.paging import Page
from falcon_assets.surface.cli.listing import print_json

_COLOURS = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.PROBLEM: "red"}


@click.command()
@click.option(
    "--only",
    "names",
    metavar="CHECK",
    multiple=True,
    type=click.Choice(tuple(CHECKS)),
    help=f"Only that check; may be repeated. Checks: {', '.join(CHECKS)}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(names: tuple[str, ...], as_json: bool) -> None:
    """Say what is wrong with this installation, and what to do: one line for each thing that was checked.

    Machine, settings, definitions, secrets, disks, database, clocks, stores, Dagster's daemon, sensors and runs. It
    takes a few seconds, also where nothing answers, and changes nothing: a small file is written to each store that
    has to be writable, and removed. The exit code is 1 where there is a problem; warnings are not counted.
    """
    found = examine(datetime.now(UTC), names)
    if as_json:
        print_json(Page(found, len(found), None).as_data())
    else:
        say(found)
        click.echo(_in_all(found))
    if not is_well(found):
        sys.exit(1)


def say(found: Iterable[CheckResult]) -> None:
    """Prints a line for each."""
    for one in found:
        diagnosis = one.diagnosis
        status = click.style(f"{diagnosis.status.value:<8}", fg=_COLOURS[diagnosis.status])
        click.echo(f"{status}{one.check}: {diagnosis.text}{f'; {diagnosis.fix}' if diagnosis.fix else ''}")


def _in_all(found: tuple[CheckResult, ...]) -> str:
    number = {status: sum(one.diagnosis.status is status for one in found) for status in Severity}
    if number[Severity.OK] == len(found):
        return "all is well"
    return f"{count_of(number[Severity.PROBLEM], 'problem')}, {count_of(number[Severity.WARNING], 'warning')}"
