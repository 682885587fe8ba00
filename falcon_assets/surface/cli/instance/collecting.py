"""``falcon instance collect``: what landed from outside is recorded now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from falcon_assets.errors import count_of
from falcon_assets.features.landing.operations import CollectedInstances, CollectInstances, CollectResult
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.declared import command_of, perform

_SHOWN = 20
"""How many missing instances are listed."""


def _show(result: CollectResult) -> None:
    feed = result.asked.feed
    for one in result.found:
        for line in _said(feed, one):
            click.echo(line)


@command_of(CollectInstances, "Print JSON instead of lines.")
def collect(asked: CollectInstances, as_json: bool) -> None:
    with open_installation() as installation:
        result = asked.run(installation)
        for one in result.found:
            if one.problem:
                click.echo(f"Error: {asked.feed} on {one.cluster}: {one.problem}", err=True)
        perform(result, _show, as_json=as_json)


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
