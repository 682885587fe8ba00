"""Why there is no way from a source to a destination: the capability that is missing, and between which places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falcon_assets.planning.flows.routes import cheapest_route
from falcon_assets.planning.flows.topology import Capability, FlowPlace, Topology


def gaps(topology: Topology, source: FlowPlace, destinations: Sequence[FlowPlace]) -> tuple[str, ...]:
    """A sentence for each destination without a way, in their order; several may have the same one."""
    if source.reads is None:
        return (f"{source} has no interface that it is read from",)
    missing = (one for one in destinations if cheapest_route(topology, source, [one]) is None)
    return tuple(dict.fromkeys(_gap(topology, source, one, destinations) for one in missing))


def _gap(topology: Topology, source: FlowPlace, missing: FlowPlace, destinations: Sequence[FlowPlace]) -> str:
    if missing.writes is None:
        return f"{missing} has no interface that it is written to"
    wanted = [one for one in destinations if one.is_cluster]
    reached = [one for one in _reached(topology, source) if one.reads is not None]
    if not reached:
        others = sorted((one for one in topology.places.values() if one.is_cluster), key=lambda one: one.name)
        entries = [missing] if missing.is_cluster else [*wanted, *others]
        entry = next((one for one in entries if one.writes is not None), None)
        if entry is None:
            return f"there is no cluster that could import from {source}"
        return _sentence(topology, entry, f"import from {source}", (source.reads or "", entry.writes or ""))
    nearest = min(reached, key=lambda one: (one not in wanted and one != source, one.name))
    if missing.is_cluster:
        return _sentence(topology, missing, f"copy from {nearest}", (nearest.reads or "", missing.writes))
    return _sentence(topology, nearest, f"export to {missing}", (nearest.reads or "", missing.writes))


def _reached(topology: Topology, source: FlowPlace) -> Iterator[FlowPlace]:
    """The clusters that data of the source can get to."""
    kinds = [one.kind for one in topology.conversions(source.reads or "")]
    for place in topology.places.values():
        if place.is_cluster and (place == source or any(topology.into(place.name, kind) for kind in kinds)):
            yield place


def _sentence(topology: Topology, cluster: FlowPlace, work: str, needed: Capability) -> str:
    capability = f"the capability [{', '.join(needed)}]"
    if all(one.cluster != cluster.name for one in topology.executors):
        return f"{cluster} has no executor: to {work}, it needs one with {capability}"
    return f"no executor of {cluster} can {work}: one of them needs {capability}"
