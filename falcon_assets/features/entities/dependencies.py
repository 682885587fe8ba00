"""Dependencies between entities: a process needs feeds and clusters; a feed clusters, datasources, other feeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.entities.listing import any_named, declared_entities
from falcon_assets.model.completeness import Expected
from falcon_assets.model.entity import Entity
from falcon_assets.model.feed import Feed
from falcon_assets.model.flow import Flow
from falcon_assets.model.process import Process
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Result

Users: TypeAlias = "Mapping[tuple[str, str], Sequence[tuple[Entity, tuple[str, ...]]]]"
"""Kind and name of an entity -> those that need it, and their roles."""


@dataclass(frozen=True)
class Need:
    """An entity that another one names; ``role`` says as what: ``cluster``, ``input``, ``import`` and so on."""

    kind: str
    name: str
    role: str


@dataclass(frozen=True)
class DependencyTree(Result):
    """An entity with all that it needs, or all that need it; ``roles`` are of the edge above it, empty at the root."""

    kind: str
    name: str
    roles: tuple[str, ...]
    below: tuple[DependencyTree, ...]
    keys = ("kind", "name", "roles", "entities=below")


@dataclass(frozen=True)
class Dependencies(Result):
    needs: DependencyTree
    needed_by: DependencyTree
    keys = ("kind=needs.kind", "name=needs.name", "needs=needs.below", "needed_by=needed_by.below")


def needs_of(entity: Entity) -> Iterator[Need]:
    if isinstance(entity, Process):
        yield from (Need("feed", one.feed, "input") for one in entity.inputs)
        yield from (Need("feed", one.feed, "output") for one in entity.outputs)
        yield from (Need("cluster", one.name, "cluster") for one in entity.clusters)
    elif isinstance(entity, Flow):
        for role, ends in (("source", (entity.source,)), ("destination", entity.destinations)):
            for one in ends:
                yield Need("cluster" if one.cluster else "datasource", one.place, role)
    elif isinstance(entity, Feed):
        yield from _needs_of_feed(entity)


def _needs_of_feed(entity: Feed) -> Iterator[Need]:
    yield from (Need("feed", name, "member") for name in (entity.rollup.of if entity.rollup else ()))
    if entity.completeness and isinstance(entity.completeness.expected, Expected) and entity.completeness.expected.feed:
        yield Need("feed", entity.completeness.expected.feed, "counts")
    for entry in entity.clusters:
        yield Need("cluster", entry.name, "cluster")
        if entry.retention and entry.retention.archive_cluster:
            yield Need("cluster", entry.retention.archive_cluster, "archive")
        if entry.import_:
            yield Need("datasource", entry.import_.source.name, "import")
        yield from (Need("datasource", one.target.name, "export") for one in entry.export or ())


def entity_dependencies(
    installation: Installation, name: str, kind: str | None = None
) -> tuple[DependencyTree, DependencyTree]:
    """Returns the entities that an entity needs, and those that need it, of all colos.

    Raises:
        UnknownEntityError: there is none of that name, or there are several and ``kind`` is not given.
        DeniedError: the user may not read it.
    """
    entity = any_named(installation.all_entities, name, kind)
    require_readable(installation, "dependency", [entity])
    return needed_by_it(installation.all_entities, entity), that_need_it(users_of(installation.all_entities), entity)


def needed_by_it(entities: EntityStore, entity: Entity, roles: tuple[str, ...] = ()) -> DependencyTree:
    below = (
        needed_by_it(entities, any_named(entities, name, kind), found)
        for (kind, name), found in _by_entity(needs_of(entity)).items()
    )
    return DependencyTree(entity.kind, entity.name, roles, tuple(below))


def that_need_it(users: Users, entity: Entity, roles: tuple[str, ...] = ()) -> DependencyTree:
    below = (that_need_it(users, one, found) for one, found in users.get((entity.kind, entity.name), ()))
    return DependencyTree(entity.kind, entity.name, roles, tuple(below))


def users_of(entities: EntityStore) -> Users:
    users: dict[tuple[str, str], list[tuple[Entity, tuple[str, ...]]]] = {}
    for one in declared_entities(entities):
        for needed, roles in _by_entity(needs_of(one)).items():
            users.setdefault(needed, []).append((one, roles))
    return users


def _by_entity(needs: Iterable[Need]) -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for one in needs:
        known = found.get((one.kind, one.name), ())
        found[one.kind, one.name] = known if one.role in known else (*known, one.role)
    return found
