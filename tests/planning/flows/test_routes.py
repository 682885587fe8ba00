"""The cheapest tree of hops, against a search through all trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.planning.flows.routes import MOST, FlowRoute, cheapest_route
from falcon_assets.planning.flows.topology import (
    HOP,
    OFFLINE,
    READ_AGAIN,
    Capability,
    FlowExecutor,
    FlowPlace,
    Topology,
)

KINDS = ["file", "s3", "hdfs"]
TYPES = ["mysql", "postgresql"]


def cluster(name: str, kind: str | None = "file", writes: str | None = None) -> FlowPlace:
    return FlowPlace(("cluster", name), kind, writes or kind)


def datasource(name: str, type_: str, *, reads: bool = True, writes: bool = True) -> FlowPlace:
    return FlowPlace(("datasource", name), type_ if reads else None, type_ if writes else None)


def executor(on: str, *can: Capability, name: str = "spark", load: float = 0, is_online: bool = True) -> FlowExecutor:
    return FlowExecutor(name, on, frozenset(can), load, is_online)


def drawn(route: FlowRoute | None) -> list[str]:
    return (
        [f"{hop.source[1]} -> {hop.target[1]} ({hop.kind} by {hop.step.executor})" for hop in route.hops]
        if route
        else []
    )


def test_a_source_is_read_once_and_goes_on_from_there() -> None:
    shop, store, reports = (
        datasource(*one) for one in (("shop", "http"), ("store", "postgresql"), ("reports", "mysql"))
    )
    one, two = cluster("one"), cluster("two", "s3")
    can = executor("one", ("http", "file"), ("file", "postgresql"))
    topology = Topology(
        [shop, store, reports, one, two],
        [can, executor("two", ("file", "s3"), ("http", "s3"), ("s3", "mysql"), name="east")],
    )
    assert drawn(cheapest_route(topology, shop, [store, one, two, reports])) == [
        "shop -> one (import by spark)",
        "one -> store (export by spark)",
        "one -> two (replication by east)",
        "two -> reports (export by east)",
    ]


def test_a_cluster_that_exports_to_both_is_better_than_two() -> None:
    shop, first, second = datasource("shop", "http"), datasource("first", "mysql"), datasource("second", "postgresql")
    topology = Topology(
        [shop, first, second, *map(cluster, "abc")],
        [
            executor("a", ("http", "file"), ("file", "mysql")),
            executor("b", ("http", "file"), ("file", "postgresql")),
            executor("c", ("http", "file"), ("file", "mysql"), ("file", "postgresql"), load=0.3),
        ],
    )
    assert [hop.cluster for hop in cheapest_route(topology, shop, [first, second]).hops] == ["c", "c", "c"]


def test_kinds_are_converted_on_the_way() -> None:
    source, target = cluster("deep", "hdfs"), cluster("cloud", "gs")
    between = [cluster("disk", "file"), cluster("bucket", "s3")]
    steps = [("disk", "hdfs", "file"), ("bucket", "file", "s3"), ("cloud", "s3", "gs")]
    topology = Topology([source, target, *between], [executor(on, (read, written)) for on, read, written in steps])
    assert [hop.target[1] for hop in cheapest_route(topology, source, [target]).hops] == ["disk", "bucket", "cloud"]


@pytest.mark.parametrize(
    ("busy", "chosen"),
    [
        pytest.param({"load": 0.9}, "idle", id="load"),
        pytest.param({"is_online": False}, "idle", id="health"),
        pytest.param({}, "busy", id="else by name"),
    ],
)
def test_executors_are_chosen_by_health_and_load(busy: Mapping[str, float], chosen: str) -> None:
    shop, one = datasource("shop", "http"), cluster("one")
    executors = [executor("one", ("http", "file"), name=name, **said) for name, said in (("busy", busy), ("idle", {}))]
    route = cheapest_route(Topology([shop, one], executors), shop, [one])
    assert drawn(route) == [f"shop -> one (import by {chosen})"]


def test_an_offline_executor_is_better_than_no_way() -> None:
    shop, one = datasource("shop", "http"), cluster("one")
    route = cheapest_route(Topology([shop, one], [executor("one", ("http", "file"), is_online=False)]), shop, [one])
    assert route is not None
    assert route.cost == HOP + OFFLINE


def test_there_is_no_way_without_the_capability() -> None:
    shop, one = datasource("shop", "http"), cluster("one")
    assert cheapest_route(Topology([shop, one], [executor("one", ("http", "s3"))]), shop, [one]) is None


def test_many_destinations_are_one_tree() -> None:
    shop = datasource("shop", "http")
    clusters = [cluster(f"lake{number}") for number in range(2 * MOST)]
    takes = [executor(one.name, ("http", "file"), ("file", "file"), ("file", "mysql")) for one in clusters]
    stores = [datasource(f"store{number}", "mysql") for number in range(9)]
    route = cheapest_route(Topology([shop, *clusters, *stores], takes), shop, [*stores, *clusters])
    assert route is not None
    assert_tree(route, shop, [*stores, *clusters])
    assert route.cost == HOP * (len(clusters) + len(stores))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Topology, FlowPlace, list[FlowPlace]]:
    clusters = [
        FlowPlace(("cluster", f"c{number}"), draw(st.sampled_from(KINDS)), draw(st.sampled_from(KINDS)))
        for number in range(draw(st.integers(1, 5)))
    ]
    datasources = [datasource(f"d{number}", draw(st.sampled_from(TYPES))) for number in range(3)]
    capability = st.tuples(st.sampled_from([*KINDS, *TYPES]), st.sampled_from([*KINDS, *TYPES]))
    executors = [
        FlowExecutor(
            f"e{number}",
            draw(st.sampled_from(clusters)).name,
            draw(st.frozensets(capability, min_size=1, max_size=12)),
            draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])),
            draw(st.booleans()) or draw(st.booleans()),
        )
        for number in range(draw(st.integers(1, 7)))
    ]
    places = [*clusters, *datasources]
    source = draw(st.sampled_from(places))
    others = [one for one in places if one != source]
    destinations = draw(st.lists(st.sampled_from(others), min_size=1, max_size=5, unique=True))
    return Topology(places, executors), source, destinations


@given(worlds())
def test_the_tree_is_the_cheapest_of_all(world: tuple[Topology, FlowPlace, list[FlowPlace]]) -> None:
    topology, source, destinations = world
    route = cheapest_route(topology, source, destinations)
    assert (route and route.cost) == min(all_costs(topology, source, destinations), default=None)
    if route:
        assert_tree(route, source, destinations)
        assert route == cheapest_route(topology, source, destinations[::-1]), (
            "the order of destinations does not matter"
        )
        moved = Topology([*topology.places.values()][::-1], topology.executors[::-1])
        assert route == cheapest_route(moved, source, destinations), "nor that of the definitions"


def assert_tree(route: FlowRoute, source: FlowPlace, destinations: Sequence[FlowPlace]) -> None:
    """Every place is reached once, from one that was reached before, and all destinations are."""
    reached = [source.key]
    for hop in route.hops:
        assert hop.source in reached
        assert hop.target not in reached
        reached.append(hop.target)
    assert {one.key for one in destinations} <= {*reached}


def all_costs(topology: Topology, source: FlowPlace, destinations: Sequence[FlowPlace]) -> Iterator[int]:
    """The cost of every tree: each cluster is absent, or hangs off another place; and so each destination."""
    clusters = [one for one in topology.places.values() if one.is_cluster and one != source]
    stores = [one for one in destinations if not one.is_cluster]
    cost = {
        (one, other): min(
            (
                executor.cost
                for executor in topology.executors
                if executor.cluster == (other if other.is_cluster else one).name
                and (one.reads, other.writes) in executor.capabilities
            ),
            default=None,
        )
        for one in [source, *clusters]
        for other in [*clusters, *stores]
        if one.is_cluster or other.is_cluster
    }
    for parents in product(*([None, source, *(one for one in clusters if one != child)] for child in clusters)):
        above = {child: parent for child, parent in zip(clusters, parents, strict=True) if parent is not None}
        there = [*above, *([source] if source.is_cluster else [])]
        hops = [cost.get((parent, child)) for child, parent in above.items()]
        hops += [min((found for one in there if (found := cost.get((one, store)))), default=None) for store in stores]
        is_complete = all(one in there for one in destinations if one.is_cluster)
        if is_complete and all(hops) and all(_is_rooted(child, above, source) for child in above):
            imports = sum(parent == source for parent in above.values()) if not source.is_cluster else 1
            yield sum(hop for hop in hops if hop) + max(imports - 1, 0) * READ_AGAIN


def _is_rooted(child: FlowPlace, above: Mapping[FlowPlace, FlowPlace], source: FlowPlace) -> bool:
    for _ in range(len(above) + 1):
        if child == source:
            return True
        if child not in above:
            return False
        child = above[child]
    return False
