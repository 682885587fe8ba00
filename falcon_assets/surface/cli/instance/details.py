"""``falcon instance params|dependency``: one instance; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from falcon_assets.instances.operations.one_instance import InstanceDependencies, InstanceParams
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command


def _show_params(found: Mapping[str, Any]) -> None:
    table = Table("variable")
    table.add_column("value", overflow="fold")
    for variable, value in found["params"].items():
        table.add_row(shown(variable), shown(value))
    print_table(table, nothing="it has no parameters")


def _show_dependencies(found: Mapping[str, Any]) -> None:
    table = _of_workload(found) if "outputs" in found else _of_feed(found)
    print_table(table, nothing="it reads and writes nothing")


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


params = command(InstanceParams, _show_params, "Print JSON instead of a table.")
dependency = command(InstanceDependencies, _show_dependencies, "Print JSON instead of a table.")
