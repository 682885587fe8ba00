"""``falcon instance params|dependency``: one process instance; nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from falcon_assets.cli.console import console
from falcon_assets.cli.listing import print_json
from falcon_assets.cli.parameters import INSTANT
from falcon_assets.operations.installation import open_installation
from falcon_assets.operations.instances.details import InstanceDetails, instance_details

_OPTIONS = (
    click.argument("process"),
    click.argument("instance", type=INSTANT),
    click.option("--cluster", help="Which cluster, where the process runs on several."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table."),
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _details(process: str, instance: datetime, cluster: str | None) -> InstanceDetails:
    with open_installation() as installation:
        return instance_details(installation, process, instance, cluster)


@click.command()
@_options
def params(process: str, instance: datetime, cluster: str | None, as_json: bool) -> None:
    """Show the variables that the workflow of the INSTANCE (YYYY-MM-DDTHH:MMZ) of PROCESS is told; secrets as stars."""
    found = _details(process, instance, cluster).params()
    if as_json:
        print_json(found)
        return
    table = Table("variable")
    table.add_column("value", overflow="fold")
    for name, value in found["params"].items():
        table.add_row(escape(name), escape(value))
    console().print(table)


@click.command()
@_options
def dependency(process: str, instance: datetime, cluster: str | None, as_json: bool) -> None:
    """Show the instances of feeds that the INSTANCE (YYYY-MM-DDTHH:MMZ) of PROCESS reads and writes.

    For each that it reads it says whether it is there now.
    """
    found = _details(process, instance, cluster).dependencies()
    if as_json:
        print_json(found)
        return
    table = Table("", "name", "feed", "instance", "available")
    table.add_column("path", overflow="fold")
    for one in found["inputs"]:
        there = "yes" if one["available"] else "no, optional" if one["optional"] else "no"
        table.add_row("reads", one["name"], one["feed"], one["instance"], there, escape(one["path"]))
    for one in found["outputs"]:
        table.add_row("writes", one["name"], one["feed"], one["instance"], "", escape(one["path"]))
    console().print(table)
