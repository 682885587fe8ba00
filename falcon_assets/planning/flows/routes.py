"""The cheapest tree of hops from the source of a flow to all of its destinations.

Trees for a set of destinations are made of those for its subsets (Dreyfus and Wagner). What matters of a cluster on the
way is only its kind, so the search is over kinds instead of clusters: the topology knows the cheapest cluster of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from falcon_assets.planning.flows.topology import READ_AGAIN, FlowPlace, HopCost, PlaceKey, Topology

HopKind: TypeAlias = Literal["import", "replication", "export"]
MOST = 6
"""Groups of destinations that are searched together; others are added by their shortest ways."""


class Hop(NamedTuple):
    """Data goes from one place to the next, on an executor of a cluster."""

    kind: HopKind
    source: PlaceKey
    target: PlaceKey
    step: HopCost

    @property
    def cluster(self) -> str:
        """The cluster whose executor makes it."""
        return (self.source if self.kind == "export" else self.target)[1]


class FlowRoute(NamedTuple):
    """All hops of a flow, each after the one that its data comes from."""

    hops: tuple[Hop, ...]

    @property
    def cost(self) -> int:
        again = sum(hop.kind == "import" for hop in self.hops) - 1
        return sum(hop.step.cost for hop in self.hops) + max(again, 0) * READ_AGAIN


class _Node(NamedTuple):
    """A cluster with what hangs off it: exports to groups of datasources, and other clusters."""

    cluster: str
    exports: tuple[int, ...]
    below: tuple[_Node, ...]


class _Exports(NamedTuple):
    """Destinations that are written alike: in a cheapest tree they hang off one cluster."""

    kind: str
    places: tuple[FlowPlace, ...]


class _Spread(NamedTuple):
    """What hangs off a place, and what it costs."""

    cost: int
    exports: tuple[int, ...] = ()
    below: tuple[_Node, ...] = ()


class _Entered(NamedTuple):
    """A cluster that a hop leads into, and what that costs with all that hangs off it."""

    cost: int
    node: _Node


KeyT = TypeVar("KeyT")
_FoundT = TypeVar("_FoundT", _Spread, _Entered)
_NO_LIMIT = 1 << 62


def cheapest_route(topology: Topology, source: FlowPlace, destinations: Sequence[FlowPlace]) -> FlowRoute | None:
    """None: there is no way to one of them at least."""
    return _Search(topology, source, destinations).route()


class _Search:
    """Sets of groups are bits. What is searched for costs less than ``limit``; None: there is no such thing."""

    def __init__(self, topology: Topology, source: FlowPlace, destinations: Sequence[FlowPlace]) -> None:
        self._topology, self._source = topology, source
        places = sorted({*destinations} - {source} if source.is_cluster else {*destinations}, key=lambda one: one.key)
        exports: dict[str, list[FlowPlace]] = {}
        for place in places:
            if not place.is_cluster:
                exports.setdefault(place.writes or "", []).append(place)
        clusters = [place.name for place in places if place.is_cluster]
        self._groups: list[str | _Exports] = [
            *clusters,
            *(_Exports(kind, tuple(those)) for kind, those in sorted(exports.items())),
        ]
        self._all_exports = ((1 << len(self._groups)) - 1) & ~((1 << len(clusters)) - 1)
        self._bits = [1 << number for number in range(len(self._groups))]
        self._least: dict[int, int] = {}
        """What groups cost at least: the cheapest hop into each place."""
        self._kinds: dict[int, tuple[tuple[str, int], ...]] = {}
        """The kinds of exports among groups, and how many places each has."""
        for wanted in [*_subsets(sum(self._bits[:MOST])), *self._bits[MOST:]]:
            self._least[wanted] = sum(self._last_hop(self._group(bit)) for bit in _bits(wanted))
            those = self._exports_of(_bits(wanted & self._all_exports))
            self._kinds[wanted] = tuple((one.kind, len(one.places)) for one in those)
        self._spreads: dict[tuple[str, int, bool], tuple[int, _Spread | None]] = {}
        self._splits: dict[tuple[str, int], tuple[int, _Spread | None]] = {}
        self._arrivals: dict[tuple[str, int], tuple[int, _Entered | None]] = {}
        self._entries: dict[tuple[str, int], tuple[int, _Entered | None]] = {}

    def route(self) -> FlowRoute | None:
        if any(self._from_source(bit, _NO_LIMIT) is None for bit in self._bits):
            return None
        bits = self._bits
        found = self._from_source(bits[0], _NO_LIMIT) if bits else _Spread(0)
        for bit in bits[1:MOST]:
            found = found and self._joined(found, bit)
        if found and len(bits) > 1:
            found = self._from_source(sum(bits[:MOST]), found.cost) or found
        for bit in bits[MOST:]:
            found = found and self._joined(found, bit)
        return found and FlowRoute(tuple(self._hops(self._source, self._source, found.exports, found.below)))

    def _from_source(self, wanted: int, limit: int) -> _Spread | None:
        if self._source.is_cluster:
            return self._below(self._source.name, wanted, limit)
        return self._spread(self._source.reads, wanted, limit, is_source=True)

    def _spread(self, kind: str | None, wanted: int, limit: int, *, is_source: bool = False) -> _Spread | None:
        """The hops off a place that reads as ``kind``."""

        def search(limit: int) -> _Spread | None:
            one = self._enter(kind or "", wanted, limit)
            again = READ_AGAIN if is_source else 0
            several = self._split(kind or "", wanted, (one.cost if one else limit) - again)
            if several:
                return several._replace(cost=several.cost + again)
            return _Spread(one.cost, (), (one.node,)) if one else None

        if not wanted:
            return _Spread(0) if limit > 0 else None
        if kind is None or self._least_from(kind, wanted) >= limit:
            return None
        return _within(limit, self._spreads, (kind, wanted, is_source), search)

    def _split(self, kind: str, wanted: int, limit: int) -> _Spread | None:
        """At least two hops off a place."""

        def search(limit: int) -> _Spread | None:
            best: _Spread | None = None
            first = wanted & -wanted
            for others in _subsets(wanted ^ first):
                rest = wanted ^ first ^ others
                one = self._enter(kind, first | others, limit - self._least[rest]) if rest else None
                more = one and self._spread(kind, rest, limit - one.cost)
                if one and more:
                    best = _Spread(one.cost + more.cost, (), (one.node, *more.below))
                    limit = best.cost
            return best

        if self._least_from(kind, wanted) >= limit or not wanted & (wanted - 1):
            return None
        return _within(limit, self._splits, (kind, wanted), search)

    def _enter(self, kind: str, wanted: int, limit: int) -> _Entered | None:
        """One hop off a place that reads as ``kind``."""

        def search(limit: int) -> _Entered | None:
            best: _Entered | None = None
            for cost, as_kind, clusters in self._topology.conversions(kind):
                if cost + self._least[wanted] >= limit:
                    break
                if cost + self._least_from(as_kind, wanted) >= limit:
                    continue
                if found := self._arrive(as_kind, wanted, limit - cost):
                    node = found.node
                    for cluster in reversed(clusters):
                        node = _Node(cluster, (), (node,))
                    best = _Entered(cost + found.cost, node)
                    limit = best.cost
            return best

        return _within(limit, self._entries, (kind, wanted), search)

    def _arrive(self, kind: str, wanted: int, limit: int) -> _Entered | None:
        """Likewise, into a cluster that is a destination, exports, or has several hops off it."""
        return _within(limit, self._arrivals, (kind, wanted), lambda limit: self._arrived(kind, wanted, limit))

    def _arrived(self, kind: str, wanted: int, limit: int) -> _Entered | None:
        best: _Entered | None = None
        for bit in _bits(wanted & ~self._all_exports):
            cluster = self._group(bit)
            assert isinstance(cluster, str)
            step = self._topology.into(cluster, kind)
            below = step and self._below(cluster, wanted ^ bit, limit - step.cost)
            if step and below:
                best = _Entered(step.cost + below.cost, _Node(cluster, below.exports, below.below))
                limit = best.cost
        for exported in _subsets(wanted & self._all_exports):
            rest = wanted ^ exported
            if not exported and not rest & (rest - 1):
                continue  # a cluster with one hop off it is a conversion
            for cost, reads, cluster in self._topology.vias(kind, self._kinds[exported]):
                if cost + self._least[rest] >= limit:
                    break
                go_on = self._spread if exported else self._split
                if more := go_on(reads, rest, limit - cost):
                    best = _Entered(cost + more.cost, _Node(cluster, tuple(_bits(exported)), more.below))
                    limit = best.cost
        return best

    def _below(self, cluster: str, wanted: int, limit: int) -> _Spread | None:
        """What hangs off a given cluster."""
        best: _Spread | None = None
        for exported in _subsets(wanted & self._all_exports):
            steps = [(self._topology.out_of(cluster, kind), times) for kind, times in self._kinds[exported]]
            cost = sum(step.cost * times for step, times in steps if step)
            if all(step for step, _ in steps):
                reads = self._topology.places["cluster", cluster].reads
                if more := self._spread(reads, wanted ^ exported, limit - cost):
                    best = _Spread(cost + more.cost, tuple(_bits(exported)), more.below)
                    limit = best.cost
        return best

    def _joined(self, tree: _Spread, bit: int) -> _Spread | None:
        """Adds the shortest way from any place of the tree to one more group."""
        if self._group(bit) in [node.cluster for node in _nodes(tree.below)]:
            return tree  # on the way to another
        way, chosen = self._from_source(bit, _NO_LIMIT), 0
        if way and not self._source.is_cluster:
            way = way._replace(cost=way.cost + READ_AGAIN)
        for number, node in enumerate(_nodes(tree.below), 1):
            found = self._below(node.cluster, bit, way.cost if way else _NO_LIMIT)
            way, chosen = (found, number) if found else (way, chosen)
        return way and _extended(tree, way, chosen)

    def _least_from(self, kind: str, wanted: int) -> int:
        """What groups cost at least off a place that reads as ``kind``: exports have a cluster before them."""
        before = 0 if wanted & ~self._all_exports else self._topology.least_from(kind)
        return before + self._least[wanted]

    def _last_hop(self, group: str | _Exports) -> int:
        if isinstance(group, str):
            return self._topology.least_into(group)
        return self._topology.least_out(group.kind) * len(group.places)

    def _group(self, bit: int) -> str | _Exports:
        return self._groups[bit.bit_length() - 1]

    def _exports_of(self, bits: Iterable[int]) -> Iterator[_Exports]:
        for bit in bits:
            group = self._group(bit)
            assert isinstance(group, _Exports)
            yield group

    def _hops(
        self, place: FlowPlace, first: FlowPlace, exports: tuple[int, ...], below: tuple[_Node, ...]
    ) -> Iterator[Hop]:
        """``first``: what copies are made of, the first cluster above that reads as this one; it costs the same."""
        for group in self._exports_of(exports):
            step = self._topology.out_of(place.name, group.kind)
            assert step
            yield from (Hop("export", place.key, one.key, step) for one in group.places)
        for node in sorted(below, key=lambda one: one.cluster):
            to = self._topology.places["cluster", node.cluster]
            step = self._topology.into(node.cluster, place.reads or "")
            assert step
            yield Hop("replication" if place.is_cluster else "import", first.key, to.key, step)
            alike = first if first.is_cluster and first.reads == to.reads else to
            yield from self._hops(to, alike, node.exports, node.below)


def _bits(wanted: int) -> Iterator[int]:
    while wanted:
        bit = wanted & -wanted
        yield bit
        wanted ^= bit


def _subsets(wanted: int) -> Iterator[int]:
    """All of them, the whole first and the empty one last."""
    subset = wanted
    while subset:
        yield subset
        subset = (subset - 1) & wanted
    yield 0


def _within(
    limit: int, known: dict[KeyT, tuple[int, _FoundT | None]], key: KeyT, search: Callable[[int], _FoundT | None]
) -> _FoundT | None:
    """Searches below a limit, unless it is known what there is below that one, or a higher one."""
    searched, found = known.get(key, (0, None))
    if found is None and searched < limit:
        found = search(limit)
        known[key] = limit, found
    return found if found and found.cost < limit else None


def _extended(tree: _Spread, way: _Spread, at: int) -> _Spread:
    """Adds a way to the place of that number in a tree: 0 is its root, then as :func:`_nodes` has them."""
    exports, below, number = tree.exports, list[_Node](), 1
    for node in tree.below:
        size = sum(1 for _ in _nodes([node]))
        inner = _Spread(0, node.exports, node.below)
        made = _extended(inner, way, at - number) if number <= at < number + size else inner
        below.append(_Node(node.cluster, made.exports, made.below))
        number += size
    if at == 0:
        exports, below = (*exports, *way.exports), [*below, *way.below]
    return _Spread(tree.cost + way.cost, exports, tuple(below))


def _nodes(below: Iterable[_Node]) -> Iterator[_Node]:
    """All clusters of a tree, each before those that hang off it."""
    for node in below:
        yield node
        yield from _nodes(node.below)
