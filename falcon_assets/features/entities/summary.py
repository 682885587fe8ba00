"""Feeds and processes with their latest instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection

from falcon_assets.entities.definition_versions import versions_for
from falcon_assets.features.entities.listing import Entity, list_entities
from falcon_assets.instances.store.instance_pages import FEED_ROWS, InstanceRows, Key
from falcon_assets.instances.store.process_rows import PROCESS_ROWS
from falcon_assets.instances.views.asked import asked_for
from falcon_assets.instances.views.due import Asked
from falcon_assets.instances.views.feed_listing import feed_instances
from falcon_assets.instances.views.listing import process_info, to_run_again
from falcon_assets.instances.views.query import InstanceInfo, InstanceQuery
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.paging import Page, Query


@dataclass(frozen=True)
class EntitySummary:
    """A feed or process with its due instances, cluster by cluster, on each the latest first."""

    entity: Entity
    instances: tuple[InstanceInfo, ...]

    def as_data(self) -> dict[str, Any]:
        return {**self.entity.as_data(), "instances": [one.as_data() for one in self.instances]}


def summarize_entities(
    installation: Installation, query: Query, number: int, cluster: str | None = None
) -> Page[EntitySummary]:
    """Lists feeds and processes with the latest ``number`` instances on each of their clusters.

    Failed instances have their reason, waiting ones have none. ``query`` selects entities as in :func:`.list_entities`.

    Raises:
        UnknownEntityError: there is no such cluster.
        QueryError: a field is not known.
    """
    filters = query.filters if cluster is None else (*query.filters, ("cluster", cluster))
    if not any(field == "kind" for field, _ in filters):
        filters = (*filters, ("kind", "feed"), ("kind", "process"))
    found = list_entities(installation, replace(query, filters=filters))
    instances: dict[tuple[str, str], list[InstanceInfo]] = {}
    with installation.tables_caught_up().begin() as connection:
        kinds: tuple[Literal["feed", "process"], ...] = ("feed", "process")
        for kind in kinds:
            names = frozenset(one.name for one in found.items if one.kind == kind)
            for instance in _latest_of(installation, connection, kind, names, cluster, number):
                instances.setdefault((kind, instance.entity), []).append(instance)
    items = tuple(EntitySummary(one, tuple(instances.get((one.kind, one.name), ()))) for one in found.items)
    return Page(items, found.total, found.next)


def _latest_of(
    installation: Installation,
    connection: Connection,
    kind: Literal["feed", "process"],
    names: frozenset[str],
    cluster: str | None,
    number: int,
) -> Iterable[InstanceInfo]:
    store, now = installation.entities, installation.settings.now()
    query = InstanceQuery(type=kind, cluster=cluster, filters=(("kind", kind),))
    asked = [one for one in asked_for(connection, store, query, now) if one.span.entity in names]
    if kind == "feed":
        return feed_instances(installation, connection, store, _latest(connection, FEED_ROWS, asked, number), now)
    workloads = {(one.name, one.cluster): one for one in store.process_workloads}
    found = _latest(connection, PROCESS_ROWS, asked, number)
    again = to_run_again(connection, found)
    versions = versions_for(connection, (workloads[key[:2]] for key, _ in found))
    return [process_info(workloads[key[:2]], key, record, versions, again=again.get(key)) for key, record in found]


def _latest(
    connection: Connection, rows: InstanceRows[Any, Any], asked: Sequence[Asked], number: int
) -> list[tuple[Key, Any]]:
    """Returns the latest instances of each, by one statement.

    A candidate without a row among the latest rows has no row at all: the row would be later than one of those.
    """
    known = dict(rows.latest(connection, [one.span for one in asked], number))
    of_each: dict[tuple[str, str], dict[datetime, Any]] = {one.key: dict.fromkeys(one.latest(number)) for one in asked}
    for (entity, cluster, instant), row in known.items():
        of_each[entity, cluster][instant] = row
    return [
        ((*key, instant), found[instant])
        for key, found in of_each.items()
        for instant in sorted(found, reverse=True)[:number]
    ]
