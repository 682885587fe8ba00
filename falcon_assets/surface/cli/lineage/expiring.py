"""``falcon lineage expire``: what is not known any longer."""

from __future__ import annotations

from dataclasses import replace

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.features.lineage.lifecycle_operations import ExpireResult, expire_lineage
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.auditing import PlainRequest
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.listing import print_json


@click.command()
@click.option("--reason", default="", help="Why; it is recorded.")
@click.option("--dry-run", is_flag=True, help="Only say what would be forgotten.")
@click.option("--yes", is_flag=True, help="Do not ask whether the plan is meant.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def expire(reason: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Forget versions whose data has been gone for longer than FALCON_LINEAGE_RETENTION.

    Shows the plan first. No data is touched. What is there or in an archive stays known, and so does what is critical
    or was made into something critical. `falcon ledger rebuild` brings back what Dagster's history still says.
    """
    request = PlainRequest(None, reason, dry_run=dry_run)
    with open_installation() as installation:
        if not (dry_run or yes):
            plan = expire_lineage(installation, replace(request, dry_run=True))
            _say(plan, as_json=as_json)
            if not plan.versions:
                return
            click.confirm("Forget all of them?", abort=True, err=True)
        _say(expire_lineage(installation, request), as_json=as_json)


def _say(done: ExpireResult, *, as_json: bool) -> None:
    if as_json:
        print_json(done.as_data())
        return
    what = count_of(len(done.versions), "version")
    said = f"would forget {what}" if done.dry_run else f"forgot {what}"
    click.echo(f"{said} whose data went before {format_instant(done.before)}")
    for (cluster, feed), count in done.by_feed.items():
        click.echo(printable(f"  {feed} on {cluster}: {count}"))
