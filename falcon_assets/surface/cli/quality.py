"""``falcon quality``: verdicts about instances, their figures, and what a person can do about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from falcon_assets.base.new_files import write_file
from falcon_assets.features.quality.operations import (
    AcceptInstance,
    CheckInstance,
    HistoryOfMetric,
    InstanceProfile,
    InstanceQuality,
    MetricHistory,
    ProfileInstance,
    ShowQuality,
)
from falcon_assets.features.quality.plots import bars, svg
from falcon_assets.features.quality.profile import QUANTILES
from falcon_assets.features.quality.verdict import QualityResult
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import console, print_table, shown
from falcon_assets.surface.cli.declared import command, command_of, perform
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.parameters import ANY_PATH

_COLORS = {"VALID": "green", "INVALID": "red", "UNCHECKED": "yellow", "BACKFILLED": "yellow"}
_BAR = 40


@click.group(cls=FullHelpGroup)
def quality() -> None:
    """Show whether instances are valid, and what their data is like; check or accept them."""


def _show_quality(found: InstanceQuality) -> None:
    name = f"{shown(found.feed)} {format_instant(found.instance)} on {found.cluster}"
    if found.verdict is None:
        console().print(f"{name}: its feed declares no checks")
    else:
        console().print(f"{name}: [{_COLORS[found.verdict.value]}]{found.verdict.value}[/]")
    if found.known is not None and found.known.origin_data is not None:
        console().print(f"[{_COLORS[found.known.state.value]}]{shown(str(found.known))}[/]")
    row, tried = found.row, found.attempts
    if row is not None and row.accepted_by is not None:
        console().print(f"accepted by {shown(row.accepted_by)}: {shown(row.accepted_reason or '')}")
    if (held := found.held) is not None:
        wrong = ", ".join(held.failed) or "it passed, another output of the instance did not"
        console().print(
            f"an output of {shown(held.process)} is [red]held[/], not published ({shown(wrong)}): {shown(held.place)}"
        )
        if held.accepted_by is not None:
            said = f"{shown(held.accepted_by)}: {shown(held.accepted_reason or '')}"
            console().print(f"accepted by {said}; it is published with all outputs of the instance")
    if found.version is None:
        console().print("it is not available")
    elif tried is not None:
        why = shown(tried.problem) or "an attempt has not ended"
        console().print(f"attempt {tried.attempts}: {why}; the next is due at {tried.retry_at:%Y-%m-%dT%H:%M:%SZ}")
    if row is None:
        return
    table = Table("check", "severity", "result")
    table.add_column("found", overflow="fold")
    for one in row.checks:
        table.add_row(shown(one.name), one.severity, _result(one), shown(one.said))
    print_table(table, nothing="the feed declares no checks")


def _result(one: QualityResult) -> str:
    if one.passed:
        return "[green]passed[/]"
    return f"[{'red' if one.severity == 'error' else 'yellow'}]failed[/]"


def _show_profile(found: InstanceProfile) -> None:
    kept = "" if found.kept else " (computed now, and not kept)"
    rows = "" if found.records is None else f": {found.records:,} rows"
    console().print(f"{shown(found.feed)} {format_instant(found.instance)} on {found.cluster}{rows}{kept}")
    table = Table("column", "type", "nulls", "NaN", "distinct", "min", "max", "mean")
    for share in QUANTILES:
        table.add_column(f"{share:.0%}", no_wrap=True)
    for one in found.columns:
        figures = (one.nulls, one.nans, one.distinct, one.min, one.max, one.mean)
        quantiles = one.quantiles or ("",) * len(QUANTILES)
        table.add_row(shown(one.name), one.type, *map(_value, (*figures, *quantiles)))
    print_table(table, nothing="it has no columns")


def _value(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else shown(str(value))


def _show_history(found: MetricHistory) -> None:
    table = Table("instance", "verdict", found.metric, "")
    plotted = bars([one.value for one in found.values], _BAR)
    for one, bar in zip(found.values, plotted, strict=True):
        color = _COLORS[one.verdict.value]
        table.add_row(format_instant(one.instance), f"[{color}]{one.verdict.value}[/]", _value(one.value), bar)
    print_table(table)


@quality.add_command
@command_of(HistoryOfMetric)
@click.option("--svg", "file", type=ANY_PATH, help="Also write the plot to this file, as SVG.")
def history(asked: HistoryOfMetric, as_json: bool, file: Path | None) -> None:
    with open_installation() as installation:
        found = asked.run(installation)
    if file is not None:
        write_file(file, svg(found))
    perform(found, _show_history, as_json=as_json)


quality.add_command(command(ShowQuality, _show_quality))
quality.add_command(command(ProfileInstance, _show_profile))
quality.add_command(command(CheckInstance, _show_quality))
quality.add_command(command(AcceptInstance, _show_quality))
