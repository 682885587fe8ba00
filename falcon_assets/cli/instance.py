"""``falcon instance``: the instances of feeds and processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from falcon_assets.catalog.store import load_entities
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.collect import RangeLook, clusters_to_collect, collect_on_all
from falcon_assets.orchestration.platform.dagster_instance import open_instance
from falcon_assets.orchestration.platform.open_ledger import open_ledger
from falcon_assets.settings import load_settings

_SHOWN = 20
"""How many missing instances are listed."""


@click.group()
def instance() -> None:
    """See and manage the instances of feeds and processes."""


@instance.command()
@click.argument("feed")
@click.option("--start", metavar="INSTANT", required=True, help="The first one to look at (YYYY-MM-DDTHH:MMZ).")
@click.option("--end", metavar="INSTANT", required=True, help="The last one to look at; it is included.")
@click.option("--cluster", help="Only on that cluster.")
def collect(feed: str, start: str, end: str, cluster: str | None) -> None:
    """Look now for instances of FEED that landed from outside, however old they are, and record them.

    Those that are recorded already are looked at too; where their files changed, they are recorded as another version.
    What is missing is said. The exit code is 1 where something could not be read.
    """
    settings = load_settings()
    store = load_entities(settings.entity_defs).in_colo(settings.colo)
    declared = store.feed(feed)
    first, last = parse_instant(start), parse_instant(end)
    if last < first:
        raise click.BadParameter(f"it is before --start {start}", param_hint="--end")
    clusters = clusters_to_collect(store, declared, cluster)
    with open_instance(settings) as opened:
        looks = collect_on_all(open_ledger(settings, opened), store, settings, declared, clusters, first, last)
    for look in looks:
        for line in _said(feed, look):
            click.echo(line)
    for look in looks:
        if look.problem:
            click.echo(f"Error: {feed} on {look.cluster}: {look.problem}", err=True)
    if any(look.problem for look in looks):
        sys.exit(1)


def _said(feed: str, look: RangeLook) -> Iterator[str]:
    recorded = len(look.new) + len(look.changed)
    what = f"{recorded} recorded" if recorded else "nothing new"
    yield f"{feed} on {look.cluster}: {what}, {len(look.unchanged)} known already, {len(look.missing)} missing"
    for word, found in (("new", look.new), ("changed", look.changed)):
        for one in found:
            files = f"{one.version.files} file{'s' if one.version.files != 1 else ''}"
            yield f"  {word:<7}  {format_instant(one.instance)}  {files}, {one.version.bytes:,} bytes"
    yield from _missing(look.missing)


def _missing(missing: Sequence[tuple[datetime, str]]) -> Iterator[str]:
    """Those that are missing; of many only the first ones, with how many more there are."""
    for instant, why in missing[:_SHOWN]:
        yield f"  missing  {format_instant(instant)}  {why}"
    if len(missing) > _SHOWN:
        yield f"  missing  ... and {len(missing) - _SHOWN:,} more, the last one {format_instant(missing[-1][0])}"
