"""``falcon flow``: flows as a whole."""

from __future__ import annotations

import click
from rich.table import Table

from falcon_assets.errors import listed_problems
from falcon_assets.features.flows.operations import (
    CompiledFlows,
    CompileFlows,
    DeleteFlows,
    ListedFlow,
    ListFlows,
    ShowFlow,
    ShownFlow,
    SubmitFlows,
    UpdateFlows,
)
from falcon_assets.features.flows.running import (
    ExplainedFlow,
    ExplainFlow,
    FlowStatus,
    FlowStatusOf,
    KillFlow,
    RunFlow,
)
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.paging import Page
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.entity.changing import show_change
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.instance.operating import show_command
from falcon_assets.surface.cli.states import colored


@click.group(cls=FullHelpGroup)
def flow() -> None:
    """Say what is moved from where to where; see how, run it, watch it."""


def _show_list(found: Page[ListedFlow]) -> None:
    table = Table("flow", "group", "status", "every", "source")
    table.add_column("destinations", overflow="fold")
    table.add_column("message", overflow="fold")
    for one in found.items:
        texts = (one.name, one.group, one.status, one.every, one.source, "\n".join(one.destinations), one.message)
        table.add_row(*map(shown, texts))
    print_table(table, nothing="there are no flows")


def _show_flow(found: ShownFlow) -> None:
    click.echo(found.definition, nl=False)
    if found.feeds:
        click.echo(f"# made of feed {' and '.join(found.feeds)}")
    for why in found.waits:
        click.echo(f"# waits: {why}")


def _show_compiled(found: CompiledFlows) -> None:
    for one in found.items:
        click.echo(f"# {one.name}")
        for line in one.drawing.splitlines():
            click.echo(f"# {line}")
        for why in one.waits:
            click.echo(f"# waits: {why}")
        click.echo(one.definitions, nl=False)
    for line in listed_problems(found.warnings):
        click.echo(line, err=True)


def _show_explained(found: ExplainedFlow) -> None:
    for why in found.waits:
        click.echo(f"{found.name} waits: {why}")
    for hop in found.hops:
        state = ", ".join(filter(None, [f"cost {hop.cost}", hop.health, f"{hop.load:.0%} busy" if hop.load else ""]))
        click.echo(f"{hop.text} ({state})")
    if found.better:
        click.echo("as executors are now, this way would be cheaper:")
        for line in found.better:
            click.echo(f"  {line}")


def _show_status(found: FlowStatus) -> None:
    when = f" {format_instant(found.instance)}" if found.instance else ""
    state = f" is {found.state}" if found.state else ""
    click.echo(f"flow {found.name} ({found.status}){when}{state}: {found.message}")
    if not found.jobs:
        return
    table = Table("destination", "job", "state")
    for name in ("rows", "watermarks", "started", "ended"):
        table.add_column(name, justify="right" if name == "rows" else "left")
    table.add_column("message", overflow="fold")
    for one in found.jobs:
        marks = (
            " .. ".join(mark or "" for mark in (one.low_watermark, one.high_watermark)) if one.high_watermark else ""
        )
        times = (moment.isoformat(sep=" ", timespec="seconds") if moment else "" for moment in (one.started, one.ended))
        rows = "" if one.rows is None else f"{one.rows:,}"
        texts = (shown(one.destination), shown(one.kind), colored(one.state), rows, shown(marks), *times)
        table.add_row(*texts, shown(one.message))
    print_table(table)


flow.add_command(command(SubmitFlows, show_change))
flow.add_command(command(UpdateFlows, show_change))
flow.add_command(command(DeleteFlows, show_change))
flow.add_command(command(ListFlows, _show_list))
flow.add_command(command(ShowFlow, _show_flow))
flow.add_command(command(CompileFlows, _show_compiled))
flow.add_command(command(ExplainFlow, _show_explained))
flow.add_command(command(RunFlow, show_command))
flow.add_command(command(KillFlow, show_command))
flow.add_command(command(FlowStatusOf, _show_status))
