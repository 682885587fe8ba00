"""``falcon executor list``: nothing is changed."""

from __future__ import annotations

import click
from rich.table import Table

from falcon_assets.features.executors.listing import ListedExecutor
from falcon_assets.features.executors.operations import ListExecutors
from falcon_assets.operations.paging import Page
from falcon_assets.planning.executor_health import Health
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.entity.words import moment
from falcon_assets.surface.cli.help import FullHelpGroup
from falcon_assets.surface.cli.listing import say_rest

_COLORS = {Health.ONLINE: "green", Health.SUSPECT: "yellow", Health.OFFLINE: "red"}


@click.group(cls=FullHelpGroup)
def executor() -> None:
    """List the executors of clusters: where they are, whether they answer, and how busy they are."""


def _show(found: Page[ListedExecutor]) -> None:
    table = Table("cluster", "executor")
    table.add_column("endpoint", overflow="fold")
    for column in ("health", "since", "jobs", "cores", "spark"):
        table.add_column(column, no_wrap=True)
    table.add_column("problem", overflow="fold")
    for one in found.items:
        color = _COLORS.get(one.health, "default")
        counts = (_of(one.jobs, one.most_jobs), _of(one.cores, one.most_cores), _spark(one))
        about = (one.cluster, one.executor, shown(one.endpoint), f"[{color}]{one.health.value}[/]", moment(one.since))
        table.add_row(*about, *counts, shown(one.problem))
    print_table(table, nothing="no executor fits")
    say_rest(found)


def _of(used: int, most: int | None) -> str:
    return str(used) if most is None else f"{used}/{most}"


def _spark(one: ListedExecutor) -> str:
    if one.spark_cores is None:
        return ""
    waiting = f", {one.waiting} waiting" if one.waiting else ""
    return f"{one.free_cores}/{one.spark_cores} free{waiting}"


executor.add_command(command(ListExecutors, _show))
