"""``falcon try``."""

from __future__ import annotations

import sys

import click
from rich.table import Table

from falcon_assets.compute.spark.sessions import stop_sessions
from falcon_assets.errors import count_of
from falcon_assets.features.trial.operations import TryInstance, TryResult, try_instance
from falcon_assets.features.trial.run import Trial, TriedColumn, TriedOutput
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command_of, perform
from falcon_assets.surface.cli.quiet import output_to
from falcon_assets.surface.cli.shutdown import ends_in_time
from falcon_assets.surface.foreground.run import abandon

_INTERRUPTED = "Interrupted: nothing was published, and what was computed is removed."


@command_of(TryInstance)
def try_(asked: TryInstance, as_json: bool) -> None:
    trials: list[Trial] = []

    def clean_up() -> None:
        abandon()
        for trial in trials:
            trial.forget()

    with ends_in_time(_INTERRUPTED, clean_up), open_installation() as installation:
        try:
            with (
                output_to(installation.settings.home / "try.log"),
                asked.trial(installation) as trial,
            ):
                trials.append(trial)
                found = try_instance(trial)
        except KeyboardInterrupt:
            click.echo(_INTERRUPTED)
            sys.exit(130)
        finally:
            stop_sessions()
    perform(found, _say, as_json=as_json)


def _say(found: TryResult) -> None:
    seconds, usage = found.tried.seconds, found.tried.usage
    what = f"{found.process} {format_instant(found.instance)} on {found.cluster}"
    click.echo(f"{what}: computed in {seconds:.0f} s; nothing is published, nothing is kept")
    for one in found.tried.outputs:
        click.echo(f"\n{one.feed} {format_instant(one.instance)}: {count_of(one.records, 'record')}")
        _say_columns(one)
        _say_rows(one)
    if usage.capture != "complete":
        click.echo(f"what it reads and writes is known {usage.capture}")
    for warning in usage.warnings:
        click.echo(f"{found.process} {warning}")


def _say_columns(one: TriedOutput) -> None:
    table = Table("column", "type")
    table.add_column("comes from", overflow="fold")
    for column in one.columns:
        table.add_row(shown(column.name), shown(column.type), shown(_sources(column)))
    print_table(table, nothing="no columns: nothing was written, and the feed declares no schema")


def _sources(column: TriedColumn) -> str:
    if column.lineage is None:
        return "unknown"
    named = ", ".join(f"{feed}.{name}" for feed, name in column.lineage.inputs) or "no input"
    return f"{named}, perhaps more" if column.lineage.is_opaque else named


def _say_rows(one: TriedOutput) -> None:
    if not one.rows:
        return
    table = Table()
    for column in one.columns:
        table.add_column(shown(column.name), overflow="fold")
    for row in one.rows:
        table.add_row(*("[dim]null[/]" if value is None else shown(value) for value in row))
    print_table(table)
    if one.records > len(one.rows):
        click.echo(f"the first {len(one.rows):,} of {one.records:,}: --rows shows more")
