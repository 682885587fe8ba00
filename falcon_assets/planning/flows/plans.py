"""Plans of flows: how each is made, or why it waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.flow import Flow, FlowEnd
from falcon_assets.model.shared import Validity
from falcon_assets.planning.capabilities import FILE, STORES, table_kind
from falcon_assets.planning.flows.feeds import MadeFeed, feeds_of, instances_of
from falcon_assets.planning.flows.gaps import gaps
from falcon_assets.planning.flows.routes import FlowRoute, cheapest_route
from falcon_assets.planning.flows.topology import FlowExecutor, FlowPlace, PlaceKey, Topology


@dataclass(frozen=True)
class ExecutorNow:
    """What is known of an executor now; ``load``: 0 is idle, 1 is busy."""

    load: float = 0
    is_online: bool = True


@dataclass(frozen=True)
class FlowPlan:
    """How a flow is made.

    Attributes:
        route: None: it waits.
        feeds: What makes it.
        waits: Why it waits, a sentence for each thing that is missing.
    """

    route: FlowRoute | None = None
    feeds: tuple[MadeFeed, ...] = ()
    waits: tuple[str, ...] = ()


class FlowPlanner:
    """Plans flows over clusters, their executors, and datasources; the same from the same, in any order."""

    def __init__(
        self,
        clusters: Mapping[str, Cluster],
        datasources: Mapping[str, Datasource],
        states: Mapping[tuple[str, str], ExecutorNow] | None = None,
    ) -> None:
        """``states``: by cluster and executor; of those that are left out, nothing is known."""
        self._clusters, self._datasources, self._states = clusters, datasources, states or {}
        self._kinds = sorted({*STORES, *(one.type for one in datasources.values())})
        self._topologies: dict[tuple[frozenset[str], str | None], Topology] = {}

    def plan(self, flow: Flow, validity: Validity) -> FlowPlan:
        """``validity`` is the flow's; all places are known."""
        instances = instances_of(flow, validity)
        if instances is None:
            return FlowPlan(waits=("schedule has no time between start and end of validity",))
        ends = (flow.source, *flow.destinations)
        tables = frozenset(one.cluster for one in ends if one.cluster and one.dataset and one.dataset.table)
        topology = self._topology(tables, flow.queue)
        source, *destinations = (topology.places[key_of_end(one)] for one in ends)
        route = cheapest_route(topology, source, destinations)
        if route is None:
            return FlowPlan(waits=gaps(topology, source, destinations))
        if waits := tuple(_chained(topology, route)):
            return FlowPlan(waits=waits)
        folders = {name: one.locations.flows for name, one in self._clusters.items()}
        return FlowPlan(route, tuple(feeds_of(flow, instances, route, folders)))

    def _topology(self, tables: frozenset[str], queue: str | None) -> Topology:
        """``tables``: clusters where it is about tables, not files; ``queue``: of the imports and exports."""
        if (tables, queue) not in self._topologies:
            stored = {name: table_kind(one) if name in tables else FILE for name, one in self._clusters.items()}
            places = [FlowPlace(("cluster", name), kind, kind) for name, kind in stored.items()]
            for name, one in self._datasources.items():
                written = one.type if one.interface(write=True) else None
                places.append(FlowPlace(("datasource", name), one.type, written))
            executors = (self._executors(one, stored[one.name], queue) for one in self._clusters.values())
            self._topologies[tables, queue] = Topology(places, chain.from_iterable(executors))
        return self._topologies[tables, queue]

    def _executors(self, cluster: Cluster, stored: str, queue: str | None) -> Iterator[FlowExecutor]:
        for one in cluster.all_executors:
            state = self._states.get((cluster.name, one.name), ExecutorNow())
            every = (*((kind, stored) for kind in self._kinds), *((stored, kind) for kind in self._kinds))
            can = (pair for pair in (every if one.capabilities is None else one.capabilities))
            if one.queue is not None:  # copies have none
                can = (pair for pair in can if one.queue == queue and not {*pair} <= {*STORES})
            yield FlowExecutor(one.name, cluster.name, frozenset(can), state.load, state.is_online)


def key_of_end(end: FlowEnd) -> PlaceKey:
    """The place that it names."""
    return ("cluster", end.cluster) if end.cluster is not None else ("datasource", end.place)


def _chained(topology: Topology, route: FlowRoute) -> Iterator[str]:
    """Copies of copies, which a feed does not have."""
    targets = {hop.target: hop for hop in route.hops if hop.kind == "replication"}
    for hop in targets.values():
        if hop.source in targets:
            first = targets[hop.source]
            read, written = topology.places[first.source].reads, topology.places[hop.target].writes
            yield (
                f"cluster {hop.target[1]!r} would have a copy of a copy, on {hop.source[1]!r}: an executor of "
                f"cluster {hop.target[1]!r} needs the capability [{read}, {written}], to copy from "
                f"{first.source[1]!r} itself"
            )
