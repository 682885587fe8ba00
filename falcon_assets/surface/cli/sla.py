"""``falcon sla alerts|pending``: nothing is changed."""

from __future__ import annotations

from datetime import timedelta

import click
from rich.table import Table

from falcon_assets.features.sla.operations import FIELDS, ORDERS, SlaAlerts, sla_alerts
from falcon_assets.features.sla.pending import FIELDS as PENDING_FIELDS
from falcon_assets.features.sla.pending import PendingBreach, sla_pending
from falcon_assets.model.instant import format_instant
from falcon_assets.model.sla import SlaLevel
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.entity.words import moment
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.listing import list_options, print_json, query_of, say_rest


@click.group(cls=FullHelpGroup)
def sla() -> None:
    """List the instances that breach their SLA, and those that soon will."""


@sla.command()
@list_options(FIELDS, ORDERS)
def alerts(
    filters: tuple[tuple[str, str], ...], sort: str | None, offset: int, limit: int | None, as_json: bool
) -> None:
    """List the breaches that are open, the newest first.

    WARN: the first level of the SLA is breached (low, should_start_in). ERROR: the SLA is missed (high, should_end_in).

    With --filter state=MET those that came late, with --filter state=WITHDRAWN those that nobody expects any more.
    """
    with open_installation() as installation:
        found = sla_alerts(installation, query_of(filters, sort, offset, limit))
    if as_json:
        print_json(found.as_data())
        return
    table = _table("deadline", "state", "cleared")
    for one in found.page.items:
        about = _about(one.level, one.entity, one.cluster, format_instant(one.instance))
        table.add_row(*about, moment(one.deadline), one.state.value, moment(one.cleared_at))
    print_table(table, nothing="no breach fits")
    say_rest(found.page)
    _say_evaluated(found)


@sla.command()
@list_options(PENDING_FIELDS)
def pending(
    filters: tuple[tuple[str, str], ...], sort: str | None, offset: int, limit: int | None, as_json: bool
) -> None:
    """List the instances that soon breach a level of their SLA unless they come, the first of them first.

    A breach of the first level is pending from a quarter of an hour before it on, one of the second level from the
    time of the first level on.
    """
    with open_installation() as installation:
        found = sla_pending(installation, query_of(filters, sort, offset, limit))
    if as_json:
        print_json(found.as_data(PendingBreach.as_data))
        return
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


def _say_evaluated(found: SlaAlerts) -> None:
    """Says how old the list is: an empty one means nothing where nobody evaluates."""
    if not found.evaluated:
        click.echo("nothing here has an SLA", err=True)
    for cluster, at in found.evaluated.items():
        when = f"were evaluated last at {moment(at)}" if at else "were never evaluated: is Dagster's daemon running?"
        click.echo(f"the SLAs on {cluster} {when}", err=True)
