"""``falcon feed report|watermark``."""

from __future__ import annotations

import click
from rich.table import Table

from falcon_assets.features.completeness.operations import (
    ReportedShare,
    ReportParts,
    ShowWatermark,
    Watermarks,
)
from falcon_assets.model.instant import format_instant
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.help import FullHelpGroup


@click.group(cls=FullHelpGroup)
def feed() -> None:
    """Report how complete instances of a feed are, and show up to when it is complete."""


def _show_share(found: ReportedShare) -> None:
    what = f"{found.feed} {format_instant(found.instance)} on {found.cluster}"
    came = "no records" if found.records is None else f"{found.records:,} records"
    if found.percent is None:
        sent = "" if found.expected is None else f" of {found.expected:,}"
        click.echo(f"{what}: {came}{sent} came" + ("; the number sent is not reported" if not sent else ""))
    else:
        click.echo(f"{what}: {found.percent:g} % of {found.at_least:g} % ({came} of {found.expected:,})")


def _show_watermarks(found: Watermarks) -> None:
    table = Table("feed", "cluster", "complete before")
    table.add_column("reason", overflow="fold")
    for one in found.items:
        table.add_row(shown(one.feed), one.cluster, format_instant(one.watermark), shown(one.why))
    print_table(table, nothing="the feed is on none of the clusters of this code location")


feed.add_command(command(ReportParts, _show_share))
feed.add_command(command(ShowWatermark, _show_watermarks))
