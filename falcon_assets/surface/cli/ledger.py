"""``falcon ledger``: the projection of Dagster's history that decisions are made from."""

from __future__ import annotations

from collections.abc import Mapping

import click
from rich.table import Table

from falcon_assets.doctor.admin import LedgerStatus, RebuildLedger, Rebuilt, ShowLedger
from falcon_assets.errors import count_of
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.surface.cli.console import console
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.help import FullHelpGroup


@click.group(cls=FullHelpGroup)
def ledger() -> None:
    """Show the state of the ledger, or rebuild it.

    The ledger holds, in database tables, what Dagster's event history records about instances. Falcon keeps it up to
    date; you rarely need these commands.
    """


def _show_rebuilt(done: Rebuilt) -> None:
    click.echo(f"the ledger is rebuilt: {done.facts} facts in {done.seconds:.1f} s")


def _show(found: LedgerStatus) -> None:
    late = f"{count_of(found.behind, 'event')} behind" if found.behind else "up to date"
    click.echo(f"folded up to event {found.event_id}: {late}")
    out = console()
    out.print(_tables(found.rows))
    if found.instances:
        out.print(_instances(found.instances))


def _tables(counted: Mapping[str, int]) -> Table:
    table = Table("table", title="Rows", title_justify="left")
    table.add_column("rows", justify="right")
    for name, rows in counted.items():
        table.add_row(name, str(rows))
    return table


def _instances(found: Mapping[tuple[str, str], Mapping[InstanceState, int]]) -> Table:
    """One column per state that occurs, in the order of an instance's life."""
    states = [one for one in InstanceState if any(one in counts for counts in found.values())]
    table = Table(title="Process instances", title_justify="left")
    for column in ("process", "cluster"):
        table.add_column(column, overflow="fold")
    for state in states:
        table.add_column(state.value, justify="right", no_wrap=True)
    for (process, cluster), counts in found.items():
        table.add_row(process, cluster, *(str(counts.get(state, 0)) for state in states))
    return table


ledger.add_command(command(RebuildLedger, _show_rebuilt, ""))
ledger.add_command(command(ShowLedger, _show, ""))
