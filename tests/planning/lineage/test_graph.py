"""Trees and drawings of versions."""

from __future__ import annotations

from falcon_assets.features.lineage.graph import Edge, Graph, dot, tree
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.version_columns import VersionStatus

T = parse_instant("2013-01-01T00:00Z")


def graph(*edges: tuple[int, int]) -> Graph:
    """Versions v1, v2 ... of the feed f; each edge leads from what was made to what it was made from."""
    numbers = {number for edge in edges for number in edge}
    versions = {
        one: Version("primary", "f", T, f"v{one}", number=one, status=VersionStatus.AVAILABLE) for one in numbers
    }
    return Graph(versions, [Edge(*edge, "p", None, None, declared=edge != (1, 4)) for edge in edges])


def lines(found: Graph, root: int, *, up: bool) -> list[tuple[int, str, bool]]:
    return [(one.depth, one.version.version, one.is_repeated) for one in tree(found, root, up=up)]


def test_what_several_were_made_from_is_unfolded_once() -> None:
    diamond = graph((1, 2), (1, 3), (2, 4), (3, 4), (4, 5))
    assert lines(diamond, 1, up=True) == [
        *((0, "v1", False), (1, "v2", False), (2, "v4", False), (3, "v5", False)),
        *((1, "v3", False), (2, "v4", True)),
    ]
    assert lines(diamond, 4, up=False) == [
        (0, "v4", False),
        (1, "v2", False),
        (2, "v1", False),
        (1, "v3", False),
        (2, "v1", False),
    ]


def test_a_circle_ends() -> None:
    assert lines(graph((1, 2), (2, 1)), 1, up=True) == [(0, "v1", False), (1, "v2", False), (2, "v1", True)]


def test_a_part_has_the_edges_between_its_versions() -> None:
    part = graph((1, 2), (2, 3), (1, 4)).only(lambda one: one.number != 3)
    assert (set(part.versions), [(one.output, one.input) for one in part.edges]) == ({1, 2, 4}, [(1, 2), (1, 4)])


def test_graphviz_takes_any_name() -> None:
    odd = Version("primary", "f", T, 'a"b\\c', number=1, status=VersionStatus.EVICTED)
    (line,) = [line for line in dot(Graph({1: odd}, [])).splitlines() if "label" in line]
    assert '"primary/f/2013-01-01T00:00Z@a\\"b\\\\c" [label=' in line
    assert '\\nprimary @a\\"b\\\\c\\nEVICTED", style=dashed];' in line
    assert '[label="p", style=dotted];' in dot(graph((1, 4)))
