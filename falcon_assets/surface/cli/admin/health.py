"""``falcon admin version|status``: what is installed, and whether it works."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from falcon_assets.doctor.admin import installation_status, installed_versions
from falcon_assets.errors import count_of
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.doctor import say
from falcon_assets.surface.cli.listing import print_json

_NAMES = {
    "falcon_assets": "falcon_assets",
    "dagster": "Dagster",
    "pyspark": "PySpark",
    "python": "Python",
    "ledger": "revision of the ledger",
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def version(as_json: bool) -> None:
    """Show the versions of this package, Dagster, PySpark and Python, and the revision of the ledger's tables."""
    with open_installation() as installation:
        found = asdict(installed_versions(installation))
    if as_json:
        print_json(found)
        return
    for name, words in _NAMES.items():
        click.echo(f"{words}: {found[name] or 'not known, the database cannot be reached'}")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> None:
    """Say whether definitions, database, Dagster's daemon and webserver, and the code location work.

    The exit code is 1 where something does not work or run. What else may be wrong: falcon doctor.
    """
    with open_installation() as installation:
        found = installation_status(installation)
    if as_json:
        print_json(found.as_data())
    else:
        say(found.findings)
        click.echo(f"clock: {found.now}")
        click.echo(f"colo: {found.colo or 'all'}")
        if found.entities is not None:
            by_status = (f"{number} {name}" for name, number in sorted(found.entities.items()))
            click.echo(f"feeds and processes: {', '.join(by_status) or 'none'}")
        if found.behind is not None:
            late = f"{count_of(found.behind, 'event')} behind" if found.behind else "up to date"
            click.echo(f"ledger: {late}")
    if not found.ok:
        sys.exit(1)
