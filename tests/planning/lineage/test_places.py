"""What is of no feed is a node: it comes from what the run read that wrote it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falcon_assets.features.lineage.graph import Edge, Graph
from falcon_assets.features.lineage.places import WITH, places_read, places_written
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.version_columns import VersionStatus

T = parse_instant("2013-01-01T00:00Z")
RAW = Version("primary", "raw", T, "a", number=1, status=VersionStatus.AVAILABLE)
MADE = replace(RAW, number=2, feed="sums", process="add-up", run_id="run", writes=("/aside",))
TWIN = replace(MADE, number=3, feed="others")
RAW_ID, MADE_ID = (f"primary/{feed}/2013-01-01T00:00Z@a" for feed in ("raw", "sums"))


def graph(*versions: Version, run: str = "run") -> Graph:
    made = [one.number for one in versions if one.writes and RAW in versions]
    return Graph({one.number: one for one in versions}, [Edge(one, 1, "add-up", run, 1, True) for one in made])


@pytest.mark.parametrize(
    ("known", "start", "edges"),
    [
        pytest.param(graph(RAW, MADE), None, [(RAW_ID, "place:/aside")], id="from what the run read"),
        pytest.param(graph(RAW, MADE, TWIN), 1, [(RAW_ID, "place:/aside")], id="once for all outputs"),
        pytest.param(graph(RAW, MADE), 2, [], id="was not made from what its run made"),
        pytest.param(
            graph(RAW, replace(MADE, places=("/in", "/aside"))),
            None,
            [("place:/in", "place:/aside"), (RAW_ID, "place:/aside")],
            id="from places, but not from itself",
        ),
        pytest.param(graph(RAW, MADE, run="other"), None, [(MADE_ID, WITH)], id="not from what others read"),
        pytest.param(graph(MADE), None, [(MADE_ID, WITH)], id="from nothing that is known"),
    ],
)
def test_what_was_written_besides(known: Graph, start: int | None, edges: list[tuple[str, str]]) -> None:
    told = [one.as_edge() for one in places_written(known, start)]
    assert [(one["from"], one.get("relation", one["to"])) for one in told] == edges


def test_what_was_read_and_what_was_written_there_is_one_node() -> None:
    (read,) = places_read([replace(RAW, places=("/aside",))])
    (written,) = places_written(graph(RAW, MADE))
    assert read.as_node() == written.as_node() == {"id": "place:/aside", "kind": "place", "name": "/aside"}
    assert written.as_edge() == {
        **{"from": RAW_ID, "to": "place:/aside", "process": "add-up"},
        **{"run": "run", "definition": None, "declared": False},
    }
