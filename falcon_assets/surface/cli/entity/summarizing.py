"""``falcon entity summary``: feeds and processes with their latest instances."""

from __future__ import annotations

from itertools import groupby

from rich.table import Table

from falcon_assets.features.entities.questions import SummarizeEntities
from falcon_assets.features.entities.summary import EntitySummary
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.paging import Page
from falcon_assets.surface.cli.console import print_table, shown
from falcon_assets.surface.cli.declared import command
from falcon_assets.surface.cli.listing import say_rest
from falcon_assets.surface.cli.states import colored


def _show(found: Page[EntitySummary]) -> None:
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


summary = command(SummarizeEntities, _show)
