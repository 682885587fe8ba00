"""Feeds that flows are made of, as documents whose problems are shown where the flow says what they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from yaml.nodes import Node

from falcon_assets.catalog.yaml_files.documents import Document, KeyPath, key_path_text
from falcon_assets.catalog.yaml_files.yaml_nodes import node_of
from falcon_assets.errors import Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.flow import Flow
from falcon_assets.planning.flows.feeds import MadeFeed
from falcon_assets.planning.flows.plans import FlowPlan, FlowPlanner


@dataclass(frozen=True)
class MadeDocument(Document):
    """The document of a feed that a flow is made of; nobody has written it.

    Attributes:
        flow: What it is made of.
        origins: Its keys -> those of the flow.
    """

    flow: Document = field(repr=False, kw_only=True)
    origins: Mapping[KeyPath, KeyPath] = field(default_factory=dict, kw_only=True)

    @classmethod
    def of(cls, flow: Document, made: MadeFeed) -> MadeDocument:
        def place(path: KeyPath) -> Node:
            return flow.node(_origin(flow, made.origins, path)) or flow.root

        root = node_of(made.data, place)
        return cls(flow.file, flow.lines, root, made.data, flow.path, flow=flow, origins=made.origins)

    def problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> Problem:
        """Says which key of the flow is meant, and which of the feed."""
        made = f"in feed {self.data['name']!r}, which it makes: {key_path_text(path) or 'the feed'}"
        return self.flow.problem(_origin(self.flow, self.origins, path), f"{message} ({made})", at_key=at_key)


def _origin(flow: Document, origins: Mapping[KeyPath, KeyPath], path: KeyPath) -> KeyPath:
    """The key of the flow, as deep as there is one, that a key of the feed comes from."""
    known = next((length for length in range(len(path), 0, -1) if path[:length] in origins), 0)
    found: KeyPath = origins.get(path[:known], ())
    for step in path[known:]:
        if flow.node((*found, step)) is None:
            break
        found = (*found, step)
    while found and flow.node(found) is None:
        found = found[:-1]
    return found


def plans_of(
    flows: Mapping[str, Flow], clusters: Mapping[str, Cluster], datasources: Mapping[str, Datasource]
) -> Iterator[tuple[str, FlowPlan]]:
    """Yields the plan of each flow that can be planned: its places are known, and so is its validity."""
    planner: FlowPlanner | None = None
    for name, flow in flows.items():
        ends = (flow.source, *flow.destinations)
        known = all(one.datasource in datasources or one.cluster in clusters for one in ends)
        if known and flow.validity is not None:
            planner = planner or FlowPlanner(clusters, datasources)
            yield name, planner.plan(flow, flow.validity)
