"""What depends on a column, and the same by walking every way there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.lineage.column_impact import Affected, affected_by
from falcon_assets.features.lineage.graph import Edge, Graph
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.version_columns import OutputColumn, OutputColumns, VersionStatus

T = parse_instant("2013-01-01T00:00Z")
FEEDS = "abcd"


def version(number: int, feed: str, plan: str | None = None, cluster: str = "primary") -> Version:
    return Version(cluster, feed, T, f"v{number}", number=number, status=VersionStatus.AVAILABLE, plan=plan)


def graph_of(*versions: Version, edges: dict[int, list[int]]) -> Graph:
    """By output, its inputs."""
    every = [Edge(output, one, "p", "r", 1, True) for output, inputs in edges.items() for one in inputs]
    return Graph({one.number: one for one in versions}, every)


PLANS = {
    "b": OutputColumns(
        (OutputColumn("x", "int", (("a", "k"),)), OutputColumn("y", "int", (("a", "v"),)), OutputColumn("one", "int")),
        (("a", "w"),),
    ),
    "c": OutputColumns((OutputColumn("z", "int", (("b", "x"),)), OutputColumn("u", "int", (("b", "y"),))), ()),
    "unsure": OutputColumns((OutputColumn("x", "int", (("a", "k"),), is_opaque=True),), ()),
    "before": OutputColumns((OutputColumn("x", "int", (("a", "k"),)),), None),
}


@pytest.mark.parametrize(
    ("column", "plan", "first", "second"),
    [
        pytest.param("k", "b", Affected(frozenset("x")), Affected(frozenset("z")), id="one of one"),
        pytest.param("v", "b", Affected(frozenset("y")), Affected(frozenset("u")), id="another"),
        pytest.param("w", "b", Affected(rows=True), Affected(frozenset("zu")), id="decides on rows"),
        pytest.param("q", "b", None, None, id="not read"),
        pytest.param("q", "unsure", Affected(perhaps=frozenset("x")), Affected(perhaps=frozenset("z")), id="opaque"),
        pytest.param("q", None, Affected(is_known=False), Affected(perhaps=frozenset("zu")), id="not recorded"),
        pytest.param(
            "k",
            "before",
            Affected(frozenset("x"), is_known=False),
            Affected(frozenset("z"), frozenset("u")),
            id="recorded without what decides on rows",
        ),
    ],
)
def test_down_a_chain(column: str, plan: str | None, first: Affected | None, second: Affected | None) -> None:
    graph = graph_of(version(1, "a"), version(2, "b", plan), version(3, "c", "c"), edges={2: [1], 3: [2]})
    expected = {number: one for number, one in ((2, first), (3, second)) if one is not None}
    assert affected_by(graph, PLANS, 1, column) == expected


def test_a_copy_has_the_same_columns() -> None:
    graph = graph_of(version(1, "a"), version(2, "a", None, "backup"), version(3, "b", "b"), edges={2: [1], 3: [2]})
    found = affected_by(graph, PLANS, 1, "k")
    assert found == {2: Affected(frozenset("k")), 3: Affected(frozenset("x"))}


def test_a_snapshot_that_was_read_for_another_instance() -> None:
    later = replace(version(2, "a"), instance=T.replace(hour=1))
    graph = graph_of(version(1, "a"), later, version(3, "b", "b"), edges={3: [2]})
    assert affected_by(graph, PLANS, 1, "k") == {}
    assert affected_by(graph.merged({1, 2}, 1), PLANS, 1, "k") == {3: Affected(frozenset("x"))}


def test_what_is_sure_by_one_way_is_sure() -> None:
    graph = graph_of(
        version(1, "a"),
        version(2, "b", "unsure"),
        version(3, "b", "b", "other"),
        version(4, "c", "c"),
        edges={2: [1], 3: [1], 4: [2, 3]},
    )
    assert affected_by(graph, PLANS, 1, "k")[4] == Affected(frozenset("z"))


sources = st.lists(st.tuples(st.sampled_from(FEEDS), st.sampled_from("xy")), max_size=3, unique=True).map(tuple)
columns = st.builds(
    OutputColumns,
    st.tuples(*(st.builds(OutputColumn, st.just(name), st.just("int"), sources, st.booleans()) for name in "xy")),
    st.none() | sources,
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Graph, dict[str, OutputColumns]]:
    count = draw(st.integers(2, 7))
    plans = draw(st.dictionaries(st.sampled_from(["p", "q", "r"]), columns))
    versions = [
        replace(
            version(number, draw(st.sampled_from(FEEDS)), draw(st.sampled_from(["p", "q", "r", None]))),
            instance=T.replace(hour=number),
        )
        for number in range(count)
    ]
    edges = {n: draw(st.lists(st.integers(0, n - 1), max_size=3, unique=True)) for n in range(1, count)}
    return graph_of(*versions, edges=edges), plans


def ways(graph: Graph, start: int, end: int) -> Iterator[list[Version]]:
    if start == end:
        yield [graph.versions[start]]
    for edge in graph.edges:
        if edge.output == end:
            yield from ([*way, graph.versions[end]] for way in ways(graph, start, edge.input))


def surely(graph: Graph, plans: dict[str, OutputColumns], end: Version, name: str, start: int, column: str) -> bool:
    """Whether a column of a version was made from the other, asked from the end: no code in common with the product."""
    if end.number == start:
        return name == column
    made = plans.get(end.plan or "")
    if made is None:
        return False
    (own,) = [one for one in made.each if one.name == name]
    wanted = [] if own.is_opaque else list(own.inputs)
    wanted += made.rows_from or ()
    above = [graph.versions[edge.input] for edge in graph.edges if edge.output == end.number]
    return any(
        one.feed == feed and of in "xy" and surely(graph, plans, one, of, start, column)
        for one in above
        for feed, of in wanted
    )


@given(worlds())
def test_as_asked_from_the_other_end(world: tuple[Graph, dict[str, OutputColumns]]) -> None:
    graph, plans = world
    found = affected_by(graph, plans, 0, "x")
    for number, one in graph.versions.items():
        if number == 0:
            continue
        of = found.get(number, Affected())
        for name in "xy":
            is_said = (one.plan or "") in plans and (name in of.columns or of.rows)
            assert surely(graph, plans, one, name, 0, "x") == is_said, (number, name)
        assert not of or any(ways(graph, 0, number))
