"""``falcon instance collect``: what landed from outside is recorded now."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from falcon_assets.errors import count_of
from falcon_assets.features.landing.operations import CollectedInstances, collect_instances, collected_data
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.listing import print_json
from falcon_assets.surface.cli.parameters import INSTANT, require_order

_SHOWN = 20
"""How many missing instances are listed."""


@click.command()
@click.argument("feed")
@click.option("--start", type=INSTANT, required=True, help="The first to check (YYYY-MM-DDTHH:MMZ).")
@click.option("--end", type=INSTANT, required=True, help="The last to check; it is included.")
@click.option("--cluster", help="Only on that cluster.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
def collect(feed: str, start: datetime, end: datetime, cluster: str | None, as_json: bool) -> None:
    """Find instances of FEED that landed from outside, however old they are, and record them now.

    Those that are recorded already are checked too; where their files changed, they are recorded as another version.
    What is missing is said. The exit code is 1 where something could not be read.
    """
    require_order(start, end)
    with open_installation() as installation:
        found = collect_instances(installation, feed, start, end, cluster)
        if as_json:
            print_json(collected_data(installation, feed, start, end, found))
    for one in () if as_json else found:
        for line in _said(feed, one):
            click.echo(line)
    for one in found:
        if one.problem:
            click.echo(f"Error: {feed} on {one.cluster}: {one.problem}", err=True)
    if any(one.problem for one in found):
        sys.exit(1)


def _said(feed: str, there: CollectedInstances) -> Iterator[str]:
    recorded = len(there.new) + len(there.changed)
    what = f"{recorded} recorded" if recorded else "nothing new"
    yield f"{feed} on {there.cluster}: {what}, {len(there.unchanged)} known already, {len(there.missing)} missing"
    for word, found in (("new", there.new), ("changed", there.changed)):
        for one in found:
            files = count_of(one.version.files, "file")
            yield f"  {word:<7}  {format_instant(one.instance)}  {files}, {one.version.bytes:,} bytes"
    yield from _missing(there.missing)


def _missing(missing: Sequence[tuple[datetime, str]]) -> Iterator[str]:
    """The missing instances; of many only the first, with how many more there are."""
    for instant, why in missing[:_SHOWN]:
        yield f"  missing  {format_instant(instant)}  {why}"
    if len(missing) > _SHOWN:
        yield f"  missing  ... and {len(missing) - _SHOWN:,} more, the last one {format_instant(missing[-1][0])}"
