"""Metadata of versions as a graph: entities, owners, tags, groups, pipelines, with the labels of Apache Falcon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from falcon_assets.history.events.data_version import Version
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.planning.workloads import kind_of_workload


@dataclass(frozen=True, order=True)
class MetadataNode:
    """An entity, or a value that describes entities; a tag is named ``name=value``."""

    kind: str
    name: str

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.name}"

    def as_node(self) -> dict[str, Any]:
        return {"id": self.id, "kind": self.kind, "name": self.name}


@dataclass(frozen=True, order=True)
class Relation:
    source: str
    target: MetadataNode
    label: str

    def as_edge(self) -> dict[str, Any]:
        return {"from": self.source, "to": self.target.id, "relation": self.label}


def relations(
    versions: Iterable[Version],
    feeds: Mapping[str, Feed],
    processes: Mapping[str, Process],
    clusters: Mapping[str, Cluster],
) -> list[Relation]:
    """Returns relations of versions and their entities; deleted entities have none of their own."""
    found = {relation for one in versions for relation in _of_version(one)}
    for node in {one.target for one in found}:
        match node.kind:
            case "feed" if feed := feeds.get(node.name):
                found.update(_described(node, feed))
                found.update(Relation(node.id, MetadataNode("group", name), "grouped-as") for name in feed.groups)
            case "process" if process := processes.get(node.name):
                found.update(_described(node, process))
                names = process.pipelines
                found.update(Relation(node.id, MetadataNode("pipeline", name), "pipeline") for name in names)
                on = (MetadataNode("cluster", one.name) for one in process.clusters)
                found.update(Relation(node.id, cluster, "runs-on") for cluster in on)
    for node in {one.target for one in found if one.target.kind == "cluster"}:
        if cluster := clusters.get(node.name):
            found.update(_described(node, cluster))
            found.add(Relation(node.id, MetadataNode("colo", cluster.colo), "collocated"))
    return sorted(found)


def _of_version(one: Version) -> Iterator[Relation]:
    yield Relation(one.id, MetadataNode("feed", one.feed), "instance-of")
    yield Relation(one.id, MetadataNode("cluster", one.cluster), "stored-in")
    if one.process:
        kind = kind_of_workload(one.process)
        yield Relation(one.id, MetadataNode(kind, one.process), "output-of")


def _described(node: MetadataNode, entity: Feed | Process | Cluster) -> Iterator[Relation]:
    if entity.acl:
        yield Relation(node.id, MetadataNode("owner", entity.acl.owner), "owned-by")
    for name, value in entity.tags.items():
        yield Relation(node.id, MetadataNode("tag", f"{name}={value}"), "classified-as")
