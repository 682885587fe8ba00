"""``falcon instance versions|restore``: the versions that an instance of a feed has had."""

from __future__ import annotations

import click
from rich.table import Table

from falcon_assets.features.versions.operations import (
    InstanceVersions,
    ListInstanceVersions,
    RestoreInstance,
    RestoreResult,
)
from falcon_assets.model.instant import format_instant
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command


def _show_versions(found: InstanceVersions) -> None:
    if not found.versions:
        where = f"{found.feed} {format_instant(found.instance)} on {found.cluster}"
        click.echo(f"{where} is not there, and has no versions")
        return
    table = Table("version", "state", "since", "until", "bytes", "by")
    table.add_column("path", overflow="fold")
    for one in found.versions:
        data = one.as_data()
        size = "" if data["bytes"] is None else f"{data['bytes']:,}"
        texts = [data[name] or "" for name in ("since", "until")]
        path = (one.path or "") if one.state in ("KEPT", "AVAILABLE") else ""
        table.add_row(one.version, one.state, *texts, size, shown(data["process"] or ""), shown(path))
    print_table(table)


def _show_restored(done: RestoreResult) -> None:
    where = f"{done.feed} {format_instant(done.instance)} on {done.cluster}"
    if not done.changed:
        click.echo(f"{where} is version {done.version} already")
    elif done.dry_run:
        click.echo(f"{where} would be restored to version {done.version}")
    else:
        click.echo(f"{where} is version {done.version} again; it was {done.before or 'not there'}")


versions = command(ListInstanceVersions, _show_versions, "Print JSON instead of a table.")
restore = command(RestoreInstance, _show_restored)
