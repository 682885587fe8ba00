"""What Falcon's clients ask about the installation, and discover about its entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from falcon_assets.errors import UnknownEntityError, UsageError
from falcon_assets.features.entities.listing import Entity
from falcon_assets.features.entities.questions import ListEntities
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.surface.rest.falcon import answers
from falcon_assets.surface.rest.falcon.answers import FalconAnswer
from falcon_assets.surface.rest.falcon.request import KINDS, SHOWN, FalconRequest


def version(asked: FalconRequest) -> FalconAnswer:
    from falcon_assets.doctor.admin import ShowVersions  # noqa: PLC0415 - it loads all checks

    found = asked.perform(ShowVersions)
    pairs = {"Version": found.falcon_assets, "Mode": "embedded", "authentication": asked.who.way, "safemode": "false"}
    return FalconAnswer({"properties": [{"key": key, "value": value} for key, value in pairs.items()]}, "properties")


_ENTITIES = {f"{kind}_entity": kind for kind in KINDS}
_VALUES: Mapping[str, tuple[str, Callable[[Entity], Iterable[str]]]] = {
    "user": ("owned-by", lambda one: [one.owner] if one.owner else []),
    "colo": ("collocated", lambda one: [one.declared.colo] if isinstance(one.declared, Cluster) else []),
    "tags": ("classified-as", lambda one: [f"{name}={value}" for name, value in one.tags.items()]),
    "pipelines": ("pipeline", lambda one: one.pipelines),
    "groups": ("grouped-as", lambda one: one.declared.groups if isinstance(one.declared, Feed) else []),
}
"""Dimension -> label of the relation to it, and the values that an entity has."""


def discovered(asked: FalconRequest) -> FalconAnswer:
    dimension = _dimension(asked)
    cluster = asked.query.get("cluster")
    found = _entities(asked, (("cluster", cluster),) if cluster else ())
    if kind := _ENTITIES.get(dimension):
        names = [one.name for one in found if one.kind == kind]
    else:
        names = [*dict.fromkeys(value for one in found for value in _VALUES[dimension][1](one))]
    return FalconAnswer({"results": names, "totalSize": len(names)}, "results")


def related(asked: FalconRequest) -> FalconAnswer:
    """What a dimension is connected to; instances are below ``/api/instance``."""
    dimension, found = _dimension(asked), _entities(asked)
    into: list[dict[str, str]] = []
    out: list[dict[str, str]] = []
    if kind := _ENTITIES.get(dimension):
        entity = next((one for one in found if (one.kind, one.name) == (kind, asked.name)), None)
        if entity is None:
            raise UnknownEntityError(f"there is no {kind} {asked.name[:SHOWN]!r}")
        into, out = _of_entity(entity, found)
    else:
        label, values = _VALUES[dimension]
        into = [_relation(one.name, one.kind, label) for one in found if asked.name in values(one)]
        if not into:
            raise UnknownEntityError(f"nothing has the {dimension} {asked.name[:SHOWN]!r}")
    about = {"name": asked.name, "type": dimension.upper()}
    return FalconAnswer({**about, "inVertices": into, "outVertices": out}, "relations")


def _of_entity(entity: Entity, known: Iterable[Entity]) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    declared = entity.declared
    into: list[dict[str, str]] = []
    out = [
        {"name": value, "type": dimension.upper(), "label": label}
        for dimension, (label, values) in _VALUES.items()
        for value in values(entity)
    ]
    where = "runs-on" if entity.kind == "process" else "stored-in"
    out += [_relation(name, "cluster", where) for name in entity.clusters]
    if isinstance(declared, Process):
        into += [_relation(one.feed, "feed", "input") for one in declared.inputs]
        out += [_relation(one.feed, "feed", "output") for one in declared.outputs]
    for other in known:
        if isinstance(other.declared, Process) and entity.kind == "feed":
            into += [
                _relation(other.name, "process", "output") for it in other.declared.outputs if it.feed == entity.name
            ]
            out += [_relation(other.name, "process", "input") for it in other.declared.inputs if it.feed == entity.name]
        elif entity.kind == "cluster" and entity.name in other.clusters:
            into.append(_relation(other.name, other.kind, "runs-on" if other.kind == "process" else "stored-in"))
    return into, out


def _relation(name: str, kind: str, label: str) -> dict[str, str]:
    return {"name": name, "type": f"{kind}_entity".upper(), "label": label}


def pipeline(asked: FalconRequest) -> FalconAnswer:
    """The processes of a pipeline, connected by the feeds that one writes and another one reads."""
    if not (name := asked.query.get("pipeline", "")):
        raise UsageError("pipeline is missing: give the name of a pipeline")
    found = [one.declared for one in _entities(asked, (("kind", "process"), ("pipeline", name)))]
    processes = [one for one in found if isinstance(one, Process)]
    if not processes:
        raise UnknownEntityError(f"there is no pipeline {name[:SHOWN]!r}")
    edges = [
        (writer.name, reader.name, written.feed)
        for writer in processes
        for written in writer.outputs
        for reader in processes
        for read in reader.inputs
        if read.feed == written.feed
    ]
    return answers.graph([one.name for one in processes], edges)


def _dimension(asked: FalconRequest) -> str:
    dimension = asked.path["dimension"].lower()
    if dimension not in (known := (*_ENTITIES, *_VALUES)):
        raise UsageError(f"Invalid dimension type: {dimension[:SHOWN]}; there is: {', '.join(known)}")
    return dimension


def _entities(asked: FalconRequest, filters: tuple[tuple[str, str], ...] = ()) -> Sequence[Entity]:
    found: Sequence[Entity] = asked.perform(ListEntities, filters=filters).items
    return found
