"""``falcon lineage prune-plan``: what can go without losing the ability to make something again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import click

from falcon_assets.errors import count_of, printable
from falcon_assets.features.lineage.graph import Version
from falcon_assets.features.lineage.lifecycle_operations import prune_plan as plan_of
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.lineage.words import VERSION, named
from falcon_assets.surface.cli.listing import print_json


@click.command(name="prune-plan")
@click.argument("versions", metavar="[VERSION]...", type=VERSION, nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def prune_plan(versions: tuple[VersionQuery, ...], as_json: bool) -> None:
    """List what data can go, and how much that frees. Changes nothing.

    Without losing the ability to make each VERSION again, written as [CLUSTER/]FEED/INSTANCE[@VERSION]; without any,
    all that are critical. What critical versions were made from stays in any case, and so does each VERSION.
    """
    with open_installation() as installation:
        plan = plan_of(installation, versions)
    if as_json:
        print_json(plan.as_data())
        return
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
