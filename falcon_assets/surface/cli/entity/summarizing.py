"""``falcon entity summary``: feeds and processes with their latest instances."""

from __future__ import annotations

from itertools import groupby

import click
from rich.table import Table

from falcon_assets.features.entities.listing import FIELDS
from falcon_assets.features.entities.summary import EntitySummary, summarize_entities
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.listing import list_options, print_json, query_of, say_rest
from falcon_assets.surface.cli.states import colored


@click.command()
@click.option("--kind", "--type", "kind", type=click.Choice(["feed", "process"]), help="Only entities of that kind.")
@click.option("--cluster", help="Only entities, and instances, on that cluster.")
@click.option("-n", "number", type=click.IntRange(1, 1000), default=7, show_default=True, help="So many instances.")
@list_options(FIELDS)
def summary(
    kind: str | None,
    cluster: str | None,
    number: int,
    filters: tuple[tuple[str, str], ...],
    sort: str | None,
    offset: int,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show feeds and processes with the states of their latest instances on each cluster, the latest first.

    Of several filters with one field any may fit, of different fields all must: --filter pipeline=sales
    """
    wanted = (*filters, ("kind", kind)) if kind else filters
    with open_installation() as installation:
        found = summarize_entities(installation, query_of(wanted, sort, offset, limit), number, cluster)
    if as_json:
        print_json(found.as_data(EntitySummary.as_data))
        return
    table = Table("kind")
    table.add_column("name", overflow="fold")
    for column in ("status", "cluster", "latest"):
        table.add_column(column, no_wrap=True)
    table.add_column("states, the latest first", overflow="fold")
    for one in found.items:
        of_clusters = groupby(one.instances, key=lambda instance: instance.cluster)
        for where, instances in [(where, list(those)) for where, those in of_clusters] or [("", [])]:
            latest = format_instant(instances[0].instance) if instances else ""
            states = " ".join(colored(instance.state.value) for instance in instances)
            entity = (one.entity.kind, shown(one.entity.name), one.entity.status)
            table.add_row(*entity, shown(where), latest, states or "none is due")
    print_table(table, nothing="no entity fits")
    say_rest(found)
