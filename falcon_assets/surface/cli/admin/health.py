"""``falcon admin version|status``: what is installed, and whether it works."""

from __future__ import annotations

import click

from falcon_assets.doctor.admin import InstallationStatus, ShowStatus, ShowVersions, Versions
from falcon_assets.errors import count_of
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.doctor import say

_NAMES = {
    "falcon_assets": "falcon_assets",
    "dagster": "Dagster",
    "pyspark": "PySpark",
    "python": "Python",
    "ledger": "revision of the ledger",
}


def _show_versions(found: Versions) -> None:
    for name, words in _NAMES.items():
        click.echo(f"{words}: {getattr(found, name) or 'not known, the database cannot be reached'}")


def _show_status(found: InstallationStatus) -> None:
    say(found.findings)
    click.echo(f"clock: {found.now}")
    click.echo(f"colo: {found.colo or 'all'}")
    if found.entities is not None:
        by_status = (f"{number} {name}" for name, number in sorted(found.entities.items()))
        click.echo(f"feeds and processes: {', '.join(by_status) or 'none'}")
    if found.behind is not None:
        late = f"{count_of(found.behind, 'event')} behind" if found.behind else "up to date"
        click.echo(f"ledger: {late}")


version = command(ShowVersions, _show_versions)
status = command(ShowStatus, _show_status)
