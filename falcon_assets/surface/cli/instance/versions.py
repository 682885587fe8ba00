"""``falcon instance versions|restore``: the versions that an instance of a feed has had."""

from __future__ import annotations

from datetime import datetime

import click
from rich.table import Table

from falcon_assets.features.versions.operations import instance_versions
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.listing import print_json
from falcon_assets.surface.cli.parameters import one_instance

_CLUSTER = click.option("--cluster", help="Which cluster, where it is on several.")


@click.command()
@click.argument("feed")
@one_instance
@_CLUSTER
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def versions(feed: str, instance: datetime, cluster: str | None, as_json: bool) -> None:
    """List the versions that the INSTANCE (YYYY-MM-DDTHH:MMZ) of FEED has had on a cluster, the last first.

    AVAILABLE is what readers see, KEPT was replaced and can be restored, REPLACED and EVICTED went.
    """
    with open_installation() as installation:
        found = instance_versions(installation, feed, instance, cluster)
    if as_json:
        print_json(found.as_data())
        return
    if not found.versions:
        click.echo(f"{feed} {format_instant(instance)} on {found.cluster} is not there, and has no versions")
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


@click.command()
@click.argument("feed")
@one_instance
@click.option(
    "--version",
    required=True,
    help="The version that is to be there again, as `falcon instance versions` lists it, or its beginning.",
)
@_CLUSTER
@click.option("--reason", default="", help="Why; it is recorded.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def restore(
    feed: str, instance: datetime, version: str, cluster: str | None, reason: str, dry_run: bool, as_json: bool
) -> None:
    """Publish a version of the INSTANCE (YYYY-MM-DDTHH:MMZ) of FEED again that was replaced and is kept.

    What it replaces is kept in its turn. Who has read the instance finds late data, as after any publication. Nothing
    is done while a run writes the instance.
    """
    from falcon_assets.features.versions.operations import restore_instance  # noqa: PLC0415 - takes seconds

    request = InstanceRequest(InstanceQuery(feed, "feed", start=instance, cluster=cluster), None, reason, dry_run)
    with open_installation() as installation:
        done = restore_instance(installation, version, request)
    if as_json:
        print_json(done.as_data())
        return
    where = f"{feed} {format_instant(instance)} on {done.cluster}"
    if not done.changed:
        click.echo(f"{where} is version {version} already")
    elif dry_run:
        click.echo(f"{where} would be restored to version {version}")
    else:
        click.echo(f"{where} is version {version} again; it was {done.before or 'not there'}")
