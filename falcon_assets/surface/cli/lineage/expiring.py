"""``falcon lineage expire``: what is not known any longer."""

from __future__ import annotations

import inspect

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.features.lineage.lifecycle_operations import ExpireLineage, ExpireResult
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.declared import options_of, perform


@click.command(help=inspect.getdoc(ExpireLineage))
@options_of(ExpireLineage)
@click.option("--yes", is_flag=True, help="Do not ask whether the plan is meant.")
def expire(asked: ExpireLineage, yes: bool, as_json: bool) -> None:
    with open_installation() as installation:
        if not (asked.dry_run or yes):
            plan = asked.model_copy(update={"dry_run": True}).run(installation)
            perform(plan, _show, as_json=as_json)
            if not plan.versions:
                return
            click.confirm("Forget all of them?", abort=True, err=True)
        perform(asked.run(installation), _show, as_json=as_json)


def _show(done: ExpireResult) -> None:
    what = count_of(len(done.versions), "version")
    said = f"would forget {what}" if done.dry_run else f"forgot {what}"
    click.echo(f"{said} whose data went before {format_instant(done.before)}")
    for one in done.feeds:
        click.echo(printable(f"  {one['feed']} on {one['cluster']}: {one['versions']}"))
