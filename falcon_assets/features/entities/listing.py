"""Lists of entities of all kinds, with filters, and look-up by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from falcon_assets.base.texts import STARS
from falcon_assets.base.texts import hidden as without_secrets
from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status
from falcon_assets.errors import UnknownEntityError
from falcon_assets.features.entities.results import EntityState
from falcon_assets.features.entities.status import entity_states
from falcon_assets.model.access import may_read
from falcon_assets.model.entity import KINDS
from falcon_assets.model.entity import Entity as AnyEntity
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.model.reference import NAMES
from falcon_assets.model.secret_values import HIDDEN_KEYS, is_secret
from falcon_assets.operations.acting import acting
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Result
from falcon_assets.operations.paging import TAG, Fields, Page, Query, require_values, select
from falcon_assets.planning.flows.feeds import FLOW_TAG

_NAMED = ("properties", "options")
"""Keys of mappings in which the name of a value decides whether it is secret."""


def hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _stars(item) if key in HIDDEN_KEYS else _properties(item) if key in _NAMED else hidden(item)
            for key, item in value.items()
        }
    if isinstance(value, str):
        return without_secrets(value)
    return [hidden(item) for item in value] if isinstance(value, list) else value


def _stars(value: Any) -> Any:
    if isinstance(value, dict):
        return (
            value if len(value) == 1 and set(value) <= {*NAMES} else {key: _stars(item) for key, item in value.items()}
        )
    return None if value is None else STARS


def _properties(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: STARS if is_secret(str(key)) and item is not None else hidden(item) for key, item in value.items()}


@dataclass(frozen=True)
class Entity(Result):
    """An entity and its status.

    Attributes:
        status: SUBMITTED, RUNNING or SUSPENDED; of other kinds always SUBMITTED.
        since: On the falcon clock; None for other kinds.
        commanded: Whether a command set the status, not ``schedule:`` in the definition.
    """

    declared: AnyEntity
    status: str = "SUBMITTED"
    since: datetime | None = None
    commanded: bool = False
    keys = ("name", "kind", "status", "clusters", "pipelines", "tags", "owner", "definition")

    @property
    def kind(self) -> str:
        return self.declared.kind

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.declared.clusters) if isinstance(self.declared, Feed | Process) else ()

    @property
    def pipelines(self) -> tuple[str, ...]:
        return self.declared.pipelines if isinstance(self.declared, Process) else ()

    @property
    def owner(self) -> str | None:
        return self.declared.acl.owner if self.declared.acl else None

    @property
    def tags(self) -> Mapping[str, str]:
        return self.declared.tags

    @property
    def definition(self) -> dict[str, Any]:
        return definition_data(self.declared)


def _tags(one: Entity) -> Iterable[str]:
    return [text for name, value in one.declared.tags.items() for text in (name, f"{name}={value}")]


FIELDS: Fields[Entity] = {
    "name": lambda one: [one.name],
    "kind": lambda one: [one.kind],
    "status": lambda one: [one.status],
    "cluster": lambda one: one.clusters,
    "pipeline": lambda one: one.pipelines,
    TAG: _tags,
    "owner": lambda one: [one.owner] if one.owner else [],
}


def list_entities(installation: Installation, query: Query | None = None, text: str | None = None) -> Page[Entity]:
    """Lists entities of this colo that the user may read: kind by kind, each in the order of definition.

    ``query`` filters by :data:`FIELDS`; ``text`` is searched in name, description and tags, ignoring case.

    Raises:
        QueryError: a field, a kind or a status is not known.
    """
    query = query or Query()
    require_values(query.filters, {"kind": KINDS, "status": [one.value for one in Status]})
    entities = installation.entities
    states = {(one.kind, one.name): one for one in entity_states(installation)}
    who = acting(installation.settings)
    known = [one for one in declared_entities(entities) if may_read(one.acl, who)]
    found = [_entity(one, states.get((one.kind, one.name))) for one in known]
    if text:
        found = [one for one in found if text.casefold() in _searched(one)]
    return select(found, query, FIELDS)


def show_entity(installation: Installation, name: str, kind: str | None = None) -> Entity:
    """Returns an entity with its status.

    Raises:
        UnknownEntityError: there is none of that name, or there are several and ``kind`` is not given.
        DeniedError: the user may not read it.
    """
    declared = any_named(installation.entities, name, kind)
    require_readable(installation, "show", [declared])
    if not isinstance(declared, Feed | Process):
        return Entity(declared)
    found = entity_states(installation, declared.kind)
    return _entity(declared, next(one for one in found if one.name == name))


def declared_entities(entities: EntityStore) -> list[AnyEntity]:
    return [one for those in entities.by_kind.values() for one in those.values()]


def any_named(entities: EntityStore, name: str, kind: str | None = None) -> AnyEntity:
    """Finds an entity of any kind; UnknownEntityError where there is none, or several and ``kind`` is not given."""
    if kind is not None:
        return entities.named(kind, name)
    found = [those[name] for those in entities.by_kind.values() if name in those]
    if name in entities.flows:
        found = [one for one in found if one.tags.get(FLOW_TAG) != name]  # what it is made of is meant with it
    if len(found) > 1:
        kinds = " and ".join(f"a {one.kind}" for one in found)
        raise UnknownEntityError(f"there is {kinds} {name!r}: say which one with --kind")
    if not found:
        close = nearest(name, [one for those in entities.by_kind.values() for one in those])
        raise UnknownEntityError(f"there is no entity {name!r}{close}")
    return found[0]


def definition_data(declared: AnyEntity) -> dict[str, Any]:
    """Returns the declared keys as plain values, without secrets."""
    data: dict[str, Any] = hidden(declared.model_dump(mode="json", by_alias=True, exclude_unset=True))
    return data


def _entity(declared: AnyEntity, state: EntityState | None) -> Entity:
    return Entity(declared, state.status, state.since, state.commanded) if state else Entity(declared)


def _searched(one: Entity) -> str:
    tags = (f"{name}={value}" for name, value in one.declared.tags.items())
    return "\n".join([one.name, one.declared.description, *tags]).casefold()
