"""``falcon lineage status``: what is validated, and what must never be lost."""

from __future__ import annotations

from datetime import datetime
from typing import cast, get_args

import click

from falcon_assets.errors import count_of
from falcon_assets.features.lineage.lifecycle_operations import LifecycleResult, set_lifecycle
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.model.feed import LifecycleStatus
from falcon_assets.operations.auditing import PlainRequest
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.lineage.words import named
from falcon_assets.surface.cli.lineage.words import status as status_of
from falcon_assets.surface.cli.listing import print_json
from falcon_assets.surface.cli.parameters import one_instance

_LISTED = 50
"""So many versions are printed."""


@click.command()
@click.argument("feed")
@one_instance
@click.argument("status", metavar="STATUS", type=click.Choice(get_args(LifecycleStatus)))
@click.option("--cluster", help="Where it is, if versions of it are on several clusters.")
@click.option("--version", help="Which version (default: the present one, else the last).")
@click.option("--reason", required=True, help="Why; it is recorded.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(
    feed: str,
    instance: datetime,
    status: str,
    cluster: str | None,
    version: str | None,
    reason: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set the lifecycle status of a version.

    STATUS is initial, test, validated or critical. Retention never deletes or archives a critical version, nor any
    version that it was made from, however far. Without this command a version has the status that its feed declares.
    INSTANCE is a time, YYYY-MM-DDTHH:MMZ.
    """
    query = VersionQuery(feed, instance, cluster, version)
    with open_installation() as installation:
        done = set_lifecycle(
            installation, query, cast(LifecycleStatus, status), PlainRequest(None, reason, dry_run=dry_run)
        )
    if as_json:
        print_json(done.as_data())
        return
    click.echo(f"{named(done.version)} {_said(done)}")
    if done.ancestors:
        click.echo(f"{count_of(len(done.ancestors), 'version')} that it was made from:")
    for one in done.ancestors[:_LISTED]:
        click.echo(f"  {named(one)}  {status_of(one)}{'' if one.exists else ': there is nothing left to protect'}")
    if len(done.ancestors) > _LISTED:
        click.echo(f"  ... and {len(done.ancestors) - _LISTED:,} more; --json lists all")


def _said(done: LifecycleResult) -> str:
    if not done.changed:
        return f"is {done.before} already"
    return f"{'would be' if done.dry_run else 'is'} {done.lifecycle.status}; it was {done.before}"
