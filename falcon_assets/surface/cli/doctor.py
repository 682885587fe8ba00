"""``falcon doctor``: what is wrong with this installation, and what to do."""

from __future__ import annotations

from collections.abc import Iterable

import click

from falcon_assets.doctor.all_checks import CheckResult, ExamineInstallation, Findings
from falcon_assets.doctor.diagnosis import Severity
from falcon_assets.errors import count_of
from falcon_assets.surface.cli.declared import command

_COLOURS = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.PROBLEM: "red"}


def say(found: Iterable[CheckResult]) -> None:
    """Prints a line for each."""
    for one in found:
        diagnosis = one.diagnosis
        status = click.style(f"{diagnosis.status.value:<8}", fg=_COLOURS[diagnosis.status])
        click.echo(f"{status}{one.check}: {diagnosis.text}{f'; {diagnosis.fix}' if diagnosis.fix else ''}")


def _show(found: Findings) -> None:
    say(found.items)
    number = {status: sum(one.diagnosis.status is status for one in found.items) for status in Severity}
    counts = f"{count_of(number[Severity.PROBLEM], 'problem')}, {count_of(number[Severity.WARNING], 'warning')}"
    click.echo("all is well" if number[Severity.OK] == found.total else counts)


doctor = command(ExamineInstallation, _show)
