"""The cluster and the feeds as they were when a version was made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection

from falcon_assets.catalog.recorded_entities import lies_as_now, opened_as_now, reached_as_now, recorded_entity
from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.definition_versions import definition_history
from falcon_assets.errors import OldDefinitionError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.planning.rollups import OF_MEMBERS

EntityT = TypeVar("EntityT", Cluster, Feed)


@dataclass(frozen=True)
class OldEntity:
    """An entity that has changed; ``version`` is the one used, None: the present definition, as none is recorded."""

    kind: str
    name: str
    version: int | None
    is_gone: bool = False

    def __str__(self) -> str:
        what = f"{self.kind} {self.name}"
        if self.version is None:
            return f"{what} as it is declared now: its earlier definition is not recorded"
        now = "it is not declared any more" if self.is_gone else "it is declared otherwise now"
        return f"{what} as in version {self.version} of its definition: {now}"


@dataclass(frozen=True)
class RecordedEntities:
    """Entities of an instance besides its process, ``old`` ones as recorded; the cluster has its present endpoints."""

    cluster: Cluster
    feeds: Mapping[str, Feed]
    old: tuple[OldEntity, ...]


def recorded_entities(
    connection: Connection, store: EntityStore, cluster: str, feeds: Iterable[str], at: datetime
) -> RecordedEntities:
    """The cluster and these feeds, with the members of roll-ups, as recorded at a time on the falcon clock, else now.

    Raises OldDefinitionError where a feed is neither declared nor recorded, or its record cannot be parsed.
    """
    old: list[OldEntity] = []

    def then(
        model: type[EntityT], kind: str, name: str, now: EntityT | None, reached: Callable[..., EntityT]
    ) -> EntityT:
        known = [one for one in definition_history(connection, kind, name) if one.since <= at and one.text is not None]
        if not known:
            if now is None:
                raise OldDefinitionError(f"there is no {kind} {name!r} any more, and no definition of it is recorded")
            old.append(OldEntity(kind, name, None))
            return now
        try:
            found = recorded_entity(model, name, known[-1].text or "", now)
        except OldDefinitionError as error:
            raise OldDefinitionError(f"version {known[-1].version} of {kind} {name!r}: {error}") from error
        found = found if now is None else reached(found, now)
        if now is None or _shown(found) != _shown(reached(now, now)):
            old.append(OldEntity(kind, name, known[-1].version, now is None))
        return found

    where = then(Cluster, "cluster", cluster, store.cluster(cluster), reached_as_now)
    found: dict[str, Feed] = {}
    pending = sorted(feeds)
    while pending:
        if (name := pending.pop(0)) in found:
            continue
        now = store.feeds.get(name)
        there = now if now is not None and now.on(cluster) else None
        found[name] = then(Feed, "feed", name, there, lambda was, other: opened_as_now(was, other, cluster))
        if found[name].on(cluster) is None:
            raise OldDefinitionError(f"feed {name!r} was not on cluster {cluster!r}, by what is recorded of it")
        pending += ((rollup := found[name].rollup) and rollup.of) or ()
    return RecordedEntities(where, found, tuple(old))


def moved(then: Feed, now: Feed | None, cluster: str) -> Feed | None:
    """The old feed at its present location; None: it has not moved."""
    if now is None or now.on(cluster) is None:
        return None
    found = lies_as_now(then, now, cluster)
    return found if _places(found, cluster) != _places(then, cluster) else None


def _places(feed: Feed, cluster: str) -> tuple[object, ...]:
    return feed.locations_on(cluster).data, feed.table_on(cluster), feed.path_zone_on(cluster)


def _shown(entity: Cluster | Feed) -> dict[str, object]:
    """Leaves out fields without effect on data, and those that a roll-up has of its members."""
    said = {"description", "notification", "tags", "acl", "groups", "template"}
    if isinstance(entity, Feed) and entity.rollup:
        said |= {*OF_MEMBERS}
    return entity.model_dump(exclude={*said, "sla", "schedule", "lifecycle", "versions", "lifecycle_status"})
