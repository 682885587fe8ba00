"""``falcon lineage prune-plan``: what can go without losing the ability to make something again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.features.lineage.lifecycle_operations import PlanPruning, PrunePlan
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import format_instant
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.lineage.words import named


def _show(plan: PrunePlan) -> None:
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


prune_plan = command(PlanPruning, _show)
