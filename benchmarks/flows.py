"""The compiler of flows: 1,000 flows over 1,000 executors and 50 kinds, and 43 of them after a change."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import TypeAlias

from benchmarks.measure import Line
from falcon_assets.planning.flows.routes import cheapest_route
from falcon_assets.planning.flows.topology import Capability, FlowExecutor, FlowPlace, Topology

EXECUTORS, STORES, TYPES, DATASOURCES = 1000, 10, 40, 500
"""Each executor has a cluster of its own; kinds are those of the stores of clusters, and the types of datasources."""
FLOWS, CHANGED = 1000, 43
BAR_ALL, BAR_CHANGED = 1.0, 0.1
ROUNDS = 5
Flow: TypeAlias = tuple[FlowPlace, list[FlowPlace]]


def measure() -> list[Line]:
    """Seconds of processor time, as nothing is waited for, from the bare facts to the routes of all flows."""
    places, executors, flows = _world(random.Random(1))
    found = [
        (f"compile {len(some):,} flows over {EXECUTORS:,} executors and {STORES + TYPES} kinds", some, bar)
        for some, bar in ((flows, BAR_ALL), (flows[:CHANGED], BAR_CHANGED))
    ]
    return [
        Line(what, tuple(_seconds(places, executors, some) for _ in range(ROUNDS)), bar=bar)
        for what, some, bar in found
    ]


def _world(chance: random.Random) -> tuple[list[FlowPlace], list[FlowExecutor], list[Flow]]:
    stores, types = [f"store{n}" for n in range(STORES)], [f"type{n}" for n in range(TYPES)]
    clusters = [
        FlowPlace(("cluster", f"c{n}"), kind, kind) for n in range(EXECUTORS) for kind in [chance.choice(stores)]
    ]
    datasources = [
        FlowPlace(("datasource", f"d{n}"), kind, kind) for n in range(DATASOURCES) for kind in [chance.choice(types)]
    ]
    executors = [
        FlowExecutor(f"e{one.name}", one.name, _capabilities(one, chance, [*stores, *types]), chance.random())
        for one in clusters
    ]
    flows = []
    for _ in range(FLOWS):
        source = chance.choice([*datasources, *clusters])
        wanted = [*chance.sample(datasources, chance.randint(1, 2)), *chance.sample(clusters, chance.randint(0, 2))]
        flows.append((source, [one for one in wanted if one != source]))
    return [*clusters, *datasources], executors, flows


def _capabilities(cluster: FlowPlace, chance: random.Random, kinds: Sequence[str]) -> frozenset[Capability]:
    """Six kinds that it takes, and six that it gives."""
    own = str(cluster.reads)
    return frozenset(
        [*((kind, own) for kind in chance.sample(kinds, 6)), *((own, kind) for kind in chance.sample(kinds, 6))]
    )


def _seconds(places: Sequence[FlowPlace], executors: Sequence[FlowExecutor], flows: Sequence[Flow]) -> float:
    started = time.process_time()
    topology = Topology(places, executors)
    for source, destinations in flows:
        cheapest_route(topology, source, destinations)
    return time.process_time() - started
