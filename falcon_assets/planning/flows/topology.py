"""What flows can be made of: places, and executors that move data between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import Literal, NamedTuple, TypeAlias

PlaceKey: TypeAlias = tuple[Literal["cluster", "datasource"], str]
Capability: TypeAlias = tuple[str, str]
"""What is read and what is written, by their kinds: ``("postgresql", "s3")``."""
HOP = 1000
"""The cost of a hop on an idle executor; on a busy one it is up to twice as much."""
OFFLINE = 1000 * HOP
"""Added for an executor that is offline: any way around it is better."""
READ_AGAIN = 10 * HOP
"""Added when a datasource is read once more: it is burdened again, and may be another one by then."""


class FlowPlace(NamedTuple):
    """A cluster or a datasource.

    Attributes:
        reads: Its kind for who reads it; None: it cannot be read.
        writes: Likewise, for who writes it.
    """

    key: PlaceKey
    reads: str | None
    writes: str | None

    @property
    def name(self) -> str:
        return self.key[1]

    @property
    def is_cluster(self) -> bool:
        return self.key[0] == "cluster"

    def __str__(self) -> str:
        return f"{self.key[0]} {self.name!r}"


@dataclass(frozen=True)
class FlowExecutor:
    """Where a cluster's work can run.

    Attributes:
        load: 0 is idle, 1 is busy.
    """

    name: str
    cluster: str
    capabilities: frozenset[Capability]
    load: float = 0
    is_online: bool = True

    @property
    def cost(self) -> int:
        return HOP + round(max(0.0, min(self.load, 1.0)) * HOP) + (0 if self.is_online else OFFLINE)


class HopCost(NamedTuple):
    """What a hop costs, and the executor that makes it."""

    cost: int
    executor: str


class Via(NamedTuple):
    """The cheapest cluster of a kind for some work."""

    cost: int
    reads: str
    cluster: str


class KindPath(NamedTuple):
    """How data of one kind becomes another: through which clusters, in order; none: it is that kind already."""

    cost: int
    kind: str
    clusters: tuple[str, ...]


class Topology:
    """A snapshot of all places and executors, with what searches ask of it again and again.

    An executor makes hops into its cluster, and from there into datasources; between clusters it is the target's.
    """

    def __init__(self, places: Iterable[FlowPlace], executors: Iterable[FlowExecutor]) -> None:
        self.places: Mapping[PlaceKey, FlowPlace] = {one.key: one for one in places}
        self.executors = tuple(executors)
        self._vias: dict[tuple[str, tuple[tuple[str, int], ...]], tuple[Via, ...]] = {}
        self._conversions: dict[str, tuple[KindPath, ...]] = {}

    def cluster(self, name: str) -> FlowPlace | None:
        return self.places.get(("cluster", name))

    def into(self, cluster: str, kind: str) -> HopCost | None:
        """The cheapest hop into a cluster from what is read as ``kind``."""
        return self._takers.get(kind, {}).get(cluster)

    def out_of(self, cluster: str, kind: str) -> HopCost | None:
        """The cheapest hop from a cluster to a datasource that is written as ``kind``."""
        return self._writers.get(kind, {}).get(cluster)

    def least_into(self, cluster: str) -> int:
        """What any hop into a cluster costs at least; 0 where there is none."""
        return self._least_into.get(cluster, 0)

    def least_out(self, kind: str) -> int:
        """What any hop to a datasource that is written as ``kind`` costs at least; 0 where there is none."""
        return self._least_out.get(kind, 0)

    def least_from(self, kind: str) -> int:
        """What any hop into a cluster from what is read as ``kind`` costs at least; 0 where there is none."""
        return self._least_from.get(kind, 0)

    def vias(self, kind: str, exports: tuple[tuple[str, int], ...] = ()) -> tuple[Via, ...]:
        """The cheapest clusters that take ``kind`` and export to these kinds so often, one for what each reads as."""
        found = self._vias.get((kind, exports))
        if found is None:
            best: dict[str, Via] = {}
            takers = self._takers.get(kind, {})
            writers = [(self._writers.get(one, {}), times) for one, times in exports]
            for cluster in set(takers).intersection(*(steps for steps, _ in writers)):
                reads, cost = self.places["cluster", cluster].reads, takers[cluster].cost
                for steps, times in writers:
                    cost += steps[cluster].cost * times
                if reads is not None and (reads not in best or (cost, reads, cluster) < best[reads]):
                    best[reads] = Via(cost, reads, cluster)
            found = self._vias[kind, exports] = tuple(sorted(best.values()))
        return found

    def conversions(self, kind: str) -> tuple[KindPath, ...]:
        """All kinds that data of ``kind`` can become, the cheapest first; the first is itself."""
        found = self._conversions.get(kind)
        if found is None:
            found = self._conversions[kind] = tuple(self._converted(kind))
        return found

    def _converted(self, kind: str) -> list[KindPath]:
        done: dict[str, KindPath] = {}
        waiting = [KindPath(0, kind, ())]
        while waiting:
            nearest = heappop(waiting)
            if nearest.kind not in done:
                done[nearest.kind] = nearest
                for cost, reads, cluster in self.vias(nearest.kind):
                    if reads not in done:
                        heappush(waiting, KindPath(nearest.cost + cost, reads, (*nearest.clusters, cluster)))
        return [*done.values()]

    @cached_property
    def _takers(self) -> dict[str, dict[str, HopCost]]:
        """What is read -> cluster -> the cheapest hop into it."""
        return self._hops[0]

    @cached_property
    def _writers(self) -> dict[str, dict[str, HopCost]]:
        """What is written -> cluster -> the cheapest hop from it."""
        return self._hops[1]

    @cached_property
    def _hops(self) -> tuple[dict[str, dict[str, HopCost]], dict[str, dict[str, HopCost]]]:
        takers: dict[str, dict[str, HopCost]] = {}
        writers: dict[str, dict[str, HopCost]] = {}
        steps = sorted(
            ((HopCost(one.cost, one.name), one) for one in self.executors if self.cluster(one.cluster)),
            key=lambda one: one[0],
        )
        for step, executor in steps:
            place = self.places["cluster", executor.cluster]
            for read, written in executor.capabilities:
                if written == place.writes:
                    takers.setdefault(read, {}).setdefault(place.name, step)
                if read == place.reads:
                    writers.setdefault(written, {}).setdefault(place.name, step)
        return takers, writers

    @cached_property
    def _least_into(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for steps in self._takers.values():
            for cluster, step in steps.items():
                found[cluster] = min(found.get(cluster, step.cost), step.cost)
        return found

    @cached_property
    def _least_from(self) -> dict[str, int]:
        return {kind: min(steps.values()).cost for kind, steps in self._takers.items()}

    @cached_property
    def _least_out(self) -> dict[str, int]:
        return {kind: min(steps.values()).cost for kind, steps in self._writers.items()}
