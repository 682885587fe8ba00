"""Flows among other definitions: the feeds that they are made of are checked, kept and named as others are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from falcon_assets.catalog.definition_texts import read_definition_texts
from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError
from tests.builders import cluster_yaml, datasource_yaml, feed_yaml

VALIDITY = {"start": "2024-05-01T00:00Z", "end": "2024-06-01T00:00Z"}


def flow_yaml(name: str = "orders", **overrides: Any) -> str:
    declared = {
        "kind": "flow",
        "name": name,
        "frequency": "hours(1)",
        "source": {"datasource": "shop", "dataset": {"table": "orders"}},
        "destinations": [{"cluster": "primary"}],
        "validity": VALIDITY,
    }
    return "---\n" + yaml.safe_dump({**declared, **overrides}, sort_keys=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "defs"
    folder.mkdir()
    (folder / "a.yaml").write_text(cluster_yaml() + datasource_yaml())
    return folder


def problems(root: Path, flow: str) -> list[str]:
    (root / "flows.yaml").write_text(flow)
    with pytest.raises(InvalidDefinitionsError) as caught:
        load_entities(root)
    return [f"{one.position.line} {one.key_path}: {one.message}" for one in caught.value.problems]


def test_its_feed_is_one_of_all_feeds(root: Path, tmp_path: Path) -> None:
    (root / "flows.yaml").write_text(flow_yaml())
    home = tmp_path / "home"
    home.mkdir()
    store, kept = load_entities(root, home=home), load_entities(root, home=home)
    for one in (store, kept):
        assert [*one.flows] == [*one.feeds] == ["orders"]
        assert one.feeds["orders"].tags == {"falcon/flow": "orders"}
        assert [workload.name for workload in one.workloads] == ["orders import"]
        assert str(one.position(one.feeds["orders"])).endswith("flows.yaml:2")


def test_it_is_recorded_with_the_feed(root: Path) -> None:
    (root / "flows.yaml").write_text(flow_yaml())
    before = read_definition_texts(root).by_key
    assert {("flow", "orders"), ("feed", "orders")} <= before.keys()
    (root / "a.yaml").write_text(cluster_yaml(locations={"flows": "/moved"}) + datasource_yaml())
    after = read_definition_texts(root).by_key
    assert before["flow", "orders"] == after["flow", "orders"]
    assert before["feed", "orders"] != after["feed", "orders"], "another topology makes another plan"


def test_problems_of_the_feed_are_shown_where_the_flow_says_it(root: Path) -> None:
    ends = [{"cluster": "primary", "dataset": {"path": "/lake/${YEAR}"}}]
    assert problems(root, flow_yaml(destinations=ends)) == [
        "12 destinations[0].dataset.path: '/lake/${YEAR}' is coarser than the frequency hours(1): instances would "
        "share a path without ${MONTH}, ${DAY}, ${HOUR} (in feed 'orders', which it makes: clusters[0].locations.data)"
    ]


def test_a_feed_of_its_name_is_in_its_way(root: Path) -> None:
    (root / "b.yaml").write_text(feed_yaml("orders"))
    (found,) = problems(root, flow_yaml())
    assert found.startswith("3 name: feed 'orders' is already defined at ")
    assert found.endswith("(in feed 'orders', which it makes: name)")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(
            {"validity": None}, "2 validity: required key is missing: falcon flow submit writes it", id="validity"
        ),
        pytest.param(
            {"source": {"datasource": "shp", "dataset": {"table": "orders"}}},
            "6 source.datasource: unknown datasource 'shp' (did you mean 'shop'?)",
            id="datasource",
        ),
        pytest.param(
            {"destinations": [{"cluster": "primry"}]},
            "10 destinations[0].cluster: unknown cluster 'primry' (did you mean 'primary'?)",
            id="cluster",
        ),
        pytest.param({"once": True}, "2 : needs exactly one of frequency, schedule and once: true", id="model"),
    ],
)
def test_problems_of_flows(root: Path, said: dict[str, Any], expected: str) -> None:
    text = flow_yaml(**said).replace("validity: null\n", "")
    assert problems(root, text) == [expected]


def test_one_without_a_way_waits_and_all_else_works(root: Path) -> None:
    away = datasource_yaml("away", interfaces={"readonly": {"endpoint": "postgresql://127.0.0.1:9/away"}})
    (root / "a.yaml").write_text(cluster_yaml() + datasource_yaml() + away)
    end = {"datasource": "away", "dataset": {"table": "orders"}}
    (root / "flows.yaml").write_text(flow_yaml() + flow_yaml("waits", destinations=[end]))
    store = load_entities(root)
    assert [*store.feeds] == ["orders"]
    assert [*store.flows] == ["orders", "waits"]
    (warning,) = store.warnings
    assert warning.message == "flow 'waits' waits: datasource 'away' has no interface that it is written to"
    assert warning.position.line == 15
