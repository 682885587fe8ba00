"""``falcon sla alerts|pending``: nothing is changed."""

from __future__ import annotations

from datetime import timedelta

import click
from rich.table import Table

from falcon_assets.features.sla.operations import ListAlerts, SlaAlerts
from falcon_assets.features.sla.pending import ListPending, PendingBreach
from falcon_assets.model.instant import format_instant
from falcon_assets.model.sla import SlaLevel
from falcon_assets.operations.paging import Page
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.entity.words import moment
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.listing import say_rest


@click.group(cls=FullHelpGroup)
def sla() -> None:
    """List instances that breach their SLA, or are about to."""


def _show_alerts(found: SlaAlerts) -> None:
    table = _table("deadline", "state", "cleared")
    for one in found.items:
        about = _about(one.level, one.entity, one.cluster, format_instant(one.instance))
        table.add_row(*about, moment(one.deadline), one.state.value, moment(one.cleared_at))
    print_table(table, nothing="no breach fits")
    say_rest(found)
    for age in found.ages(moment):
        click.echo(age, err=True)


def _show_pending(found: Page[PendingBreach]) -> None:
    table = _table("deadline", "left")
    for one in found.items:
        about = _about(one.deadline.level, one.deadline.entity, one.deadline.cluster, format_instant(one.instance))
        table.add_row(*about, moment(one.at), str(timedelta(seconds=int(one.left.total_seconds()))))
    print_table(table, nothing="no instance is about to breach its SLA")
    say_rest(found)


def _table(*columns: str) -> Table:
    table = Table("severity")
    table.add_column("entity", overflow="fold")
    for column in ("cluster", "instance", "level", *columns):
        table.add_column(column, no_wrap=True)
    return table


def _about(level: SlaLevel, entity: str, cluster: str, instance: str) -> tuple[str, ...]:
    color = "red" if level.is_missed else "yellow"
    return f"[{color}]{level.severity}[/]", shown(entity), cluster, instance, level.value


sla.add_command(command(ListAlerts, _show_alerts))
sla.add_command(command(ListPending, _show_pending))
