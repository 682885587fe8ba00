"""``falcon instance params|dependency``: one instance; nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import click
from rich.table import Table

from falcon_assets.instances.views.details import instance_details
from falcon_assets.instances.views.feed_dependencies import feed_instance_dependencies
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.instance.reading import TYPE
from falcon_assets.surface.cli.listing import print_json
from falcon_assets.surface.cli.parameters import one_instance

_OPTIONS = (
    click.argument("name"),
    one_instance,
    click.option("--cluster", help="Which cluster, where it is on several; of a replication the target."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table."),
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@_options
def params(name: str, instance: datetime, cluster: str | None, as_json: bool) -> None:
    """Show what the INSTANCE (YYYY-MM-DDTHH:MMZ) of NAME is told; secrets as stars.

    NAME is a process: the variables of its workflow; or a feed that is replicated, or such a replication ("FEED from
    CLUSTER"): what is copied from where to where, and the options of the copy.
    """
    with open_installation() as installation:
        found = instance_details(installation, name, instance, cluster).params()
    if as_json:
        print_json(found)
        return
    table = Table("variable")
    table.add_column("value", overflow="fold")
    for variable, value in found["params"].items():
        table.add_row(shown(variable), shown(value))
    print_table(table, nothing="it is told nothing")


@click.command()
@_options
@TYPE
def dependency(name: str, instance: datetime, cluster: str | None, type: str, as_json: bool) -> None:
    """Show what the INSTANCE (YYYY-MM-DDTHH:MMZ) of NAME reads and writes, and whether what it reads is there now.

    NAME is a process, a feed that is replicated, or such a replication ("FEED from CLUSTER"). With --type feed it is a
    feed: who writes the instance, who read it, and who has yet to read it.
    """
    with open_installation() as installation:
        if type == "feed":
            found = feed_instance_dependencies(installation, name, instance, cluster).as_data()
        else:
            found = instance_details(installation, name, instance, cluster).dependencies()
    if as_json:
        print_json(found)
        return
    print_table(_of_feed(found) if type == "feed" else _of_workload(found), nothing="it reads and writes nothing")


def _of_workload(found: Mapping[str, Any]) -> Table:
    table = Table("", "name", "feed", "instance", "available")
    table.add_column("path", overflow="fold")
    for one in found["inputs"]:
        there = "yes" if one["available"] else "no, optional" if one["optional"] else "no"
        table.add_row("reads", one["name"], one["feed"], one["instance"], there, shown(one["path"]))
    for one in found["outputs"]:
        table.add_row("writes", one["name"], one["feed"], one["instance"], "", shown(one["path"]))
    return table


def _of_feed(found: Mapping[str, Any]) -> Table:
    table = Table("")
    table.add_column("entity", overflow="fold")
    for column in ("cluster", "instance"):
        table.add_column(column, no_wrap=True)
    table.add_column("", overflow="fold")
    table.add_row("is", shown(found["entity"]), found["cluster"], found["instance"], found["state"])
    for one in found["written_by"]:
        table.add_row("written by", shown(one["entity"]), one["cluster"], one["instance"], one["state"])
    for one in found["read_by"]:
        what = f"version {one['version']}" if one["version"] else "it was not there"
        now = ", another one is there now" if one["stale"] else ""
        table.add_row("read by", shown(one["entity"]), one["cluster"], one["instance"], f"{what}{now}")
    for one in found["will_read"]:
        first, last = one["first"] or "", one["last"]
        when = (
            "what is latest then" if one["number"] is None else f"to {last}, {one['number']}" if first != last else ""
        )
        table.add_row("to be read by", shown(one["entity"]), one["cluster"], first, when)
    return table
