"""``falcon ledger``: the projection of Dagster's history that decisions are made from."""

from __future__ import annotations

import time

import click
from rich.console import Console
from rich.table import Table

from falcon_assets.ledger.overview import Overview, overview
from falcon_assets.orchestration.platform.dagster_instance import open_instance
from falcon_assets.orchestration.platform.open_ledger import open_ledger
from falcon_assets.planning.instances.instance_record import InstanceState
from falcon_assets.settings import load_settings


@click.group()
def ledger() -> None:
    """Show how far the ledger is; make it anew.

    The ledger is what Dagster's history says about instances, in tables. Everything else keeps it up to date by itself.
    """


@ledger.command()
def rebuild() -> None:
    """Make it anew from all of Dagster's history; what commands said to entities is kept."""
    settings = load_settings()
    with open_instance(settings) as instance:
        opened = open_ledger(settings, instance)
        started = time.monotonic()
        facts = opened.rebuild()
        seconds = time.monotonic() - started
    click.echo(f"the ledger is rebuilt: {facts} facts in {seconds:.1f} s")


@ledger.command()
def status() -> None:
    """Show how far it is, how many rows its tables have, and the process instances by state."""
    settings = load_settings()
    with open_instance(settings) as instance:
        opened = open_ledger(settings, instance)
        with opened.engine.connect() as connection:
            found = overview(connection)
        behind = opened.behind(found.event_id)
    late = f"{behind} event{'' if behind == 1 else 's'} behind" if behind else "up to date"
    click.echo(f"folded up to event {found.event_id}: {late}")
    console = Console(soft_wrap=True)
    console.print(_tables(found))
    if found.instances:
        console.print(_instances(found))


def _tables(found: Overview) -> Table:
    table = Table("table", title="Rows", title_justify="left")
    table.add_column("rows", justify="right")
    for name, rows in found.rows.items():
        table.add_row(name, str(rows))
    return table


def _instances(found: Overview) -> Table:
    """One column per state that occurs, in the order of an instance's life."""
    states = [one for one in InstanceState if any(one in counts for counts in found.instances.values())]
    table = Table(title="Process instances", title_justify="left")
    for column in ("process", "cluster"):
        table.add_column(column, overflow="fold")
    for state in states:
        table.add_column(state.value, justify="right", no_wrap=True)
    for (process, cluster), counts in found.instances.items():
        table.add_row(process, cluster, *(str(counts.get(state, 0)) for state in states))
    return table
