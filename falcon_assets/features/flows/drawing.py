"""A route as a drawing: a tree, from the source to the destinations."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.planning.flows.routes import FlowRoute, Hop
from falcon_assets.planning.flows.topology import PlaceKey

_WORDS = {"import": "imported", "replication": "copied", "export": "exported"}


def drawing(source: PlaceKey, route: FlowRoute) -> str:
    """One line for each place, below the one that its data comes from."""
    return "\n".join([" ".join(source), *_below(route, source, "")])


def _below(route: FlowRoute, place: PlaceKey, margin: str) -> Iterator[str]:
    hops = [hop for hop in route.hops if hop.source == place]
    for hop in hops:
        is_last = hop is hops[-1]
        yield f"{margin}{'└─' if is_last else '├─'} {said(hop)}"
        yield from _below(route, hop.target, f"{margin}{'   ' if is_last else '│  '}")


def said(hop: Hop) -> str:
    """``cluster lake, imported by executor default of cluster lake``."""
    return f"{' '.join(hop.target)}, {_WORDS[hop.kind]} by executor {hop.step.executor} of cluster {hop.cluster}"
