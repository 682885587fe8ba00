"""``falcon lineage status|prune-plan|expire``: what is validated, what must never be lost, and what may go."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.features.lineage.lifecycle_operations import (
    ExpireLineage,
    ExpireResult,
    LifecycleResult,
    PlanPruning,
    PrunePlan,
    SetLifecycle,
)
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.declared import command, command_of, perform
from falcon_assets.surface.cli.lineage.words import named
from falcon_assets.surface.cli.lineage.words import status as status_of

_LISTED = 50
"""Printed versions."""


def _show(done: LifecycleResult) -> None:
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


status = command(SetLifecycle, _show)


@command_of(ExpireLineage)
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
def expire(asked: ExpireLineage, yes: bool, as_json: bool) -> None:
    with open_installation() as installation:
        if not (asked.dry_run or yes):
            plan = asked.model_copy(update={"dry_run": True}).run(installation)
            perform(plan, _show_expired, as_json=as_json)
            if not plan.versions:
                return
            click.confirm("Forget all of them?", abort=True, err=True)
        perform(asked.run(installation), _show_expired, as_json=as_json)


def _show_expired(done: ExpireResult) -> None:
    what = count_of(len(done.versions), "version")
    said = f"would forget {what}" if done.dry_run else f"forgot {what}"
    click.echo(f"{said} whose data went before {format_instant(done.before)}")
    for one in done.feeds:
        click.echo(printable(f"  {one['feed']} on {one['cluster']}: {one['versions']}"))


def _show_plan(plan: PrunePlan) -> None:
    click.echo(f"{count_of(len(plan.wanted), 'version')} to be made again")
    for one in plan.impossible:
        click.echo(f"  {named(one)} cannot be made again: keep it; falcon lineage show says what it came from")
    _list("needed for that:", [one for one in plan.needed if one not in plan.protected])
    _list("protected, for what is critical:", plan.protected)
    _list("can go:", plan.goes)
    if plan.hidden:
        click.echo(f"{count_of(plan.hidden, 'version')} of feeds that you may not read can go, too")
    click.echo(f"{count_of(len(plan.goes), 'version')} can go, which frees {plan.bytes:,} bytes")


def _list(title: str, versions: Sequence[Version]) -> None:
    """A line for each feed on a cluster: a hundred thousand lines help nobody."""
    if versions:
        click.echo(title)
    for (cluster, feed), alike in groupby(versions, lambda one: (one.cluster, one.feed)):
        of_feed = list(alike)
        first, last = (format_instant(one.instance) for one in (of_feed[0], of_feed[-1]))
        when = first if first == last else f"{first} to {last}"
        size = sum(one.bytes or 0 for one in of_feed)
        click.echo(printable(f"  {feed} on {cluster}: {count_of(len(of_feed), 'version')}, {when}, {size:,} bytes"))


prune_plan = command(PlanPruning, _show_plan)
