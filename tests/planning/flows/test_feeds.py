"""The feeds that a flow is made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.base import is_entity_name
from falcon_assets.model.feed import Feed
from falcon_assets.model.flow import Flow
from falcon_assets.planning.flows.feeds import MadeFeed, feeds_of, instances_of, submitted_start
from falcon_assets.planning.flows.routes import cheapest_route
from falcon_assets.planning.flows.topology import Topology
from falcon_assets.planning.timeline import feed_timeline
from tests.planning.flows.test_routes import cluster, datasource, executor

SHOP, STORE, REPORTS = datasource("shop", "http"), datasource("store", "postgresql"), datasource("reports", "mysql")
TOPOLOGY = Topology(
    [SHOP, STORE, REPORTS, cluster("one"), cluster("two")],
    [
        executor("one", ("http", "file"), ("file", "postgresql")),
        executor("two", ("file", "file"), ("file", "mysql")),
    ],
)
STORY = """
kind: flow
name: orders
group: sales
tags: {team: sales}
source: {datasource: shop, dataset: {table: v1/orders}}
destinations:
  - {datasource: store, dataset: {table: orders}, export: {load: {upsert: {key: [id]}}}}
  - {cluster: one, retention: {limit: days(90)}}
  - {cluster: two, dataset: {path: "/lake/orders/${YEAR}${MONTH}${DAY}${HOUR}"}}
  - {datasource: reports, dataset: {table: orders}, export: {load: replace, queue: night}}
validity: {start: 2024-05-01T00:00Z, end: 2024-06-01T00:00Z}
"""


def flow(text: str = STORY, **overrides: Any) -> Flow:
    declared = {**yaml.safe_load(text), **overrides}
    return Flow.model_validate(
        declared if {"schedule", "once"} & {*declared} else {"frequency": "hours(1)", **declared}
    )


def made(one: Flow, topology: Topology = TOPOLOGY) -> list[MadeFeed]:
    ends = [
        topology.places["cluster" if end.cluster else "datasource", end.place]
        for end in (one.source, *one.destinations)
    ]
    route = cheapest_route(topology, ends[0], ends[1:])
    assert route is not None
    assert one.validity is not None
    validity = instances_of(one, one.validity)
    assert validity is not None
    return feeds_of(one, validity, route, {place.name: "/flows/" for place in topology.places.values()})


def entries(one: MadeFeed) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in one.data["clusters"]}


def test_a_flow_is_one_feed_with_its_import_its_copies_and_its_exports() -> None:
    (found,) = made(flow())
    assert found.data == {
        "kind": "feed",
        "name": "orders",
        "tags": {"team": "sales", "falcon/flow": "orders"},
        "groups": ["sales"],
        "frequency": "hours(1)",
        "timezone": "UTC",
        "availability_flag": "_SUCCESS",
        "format": "parquet",
        "schedule": True,
        "clusters": [
            {
                "name": "one",
                "type": "source",
                "validity": {"start": "2024-05-01T00:00Z", "end": "2024-06-01T00:00Z"},
                "locations": {"data": "/flows/orders/${YEAR}-${MONTH}-${DAY}/${HOUR}"},
                "retention": {"limit": "days(90)"},
                "export": [{"load": {"upsert": {"key": ["id"]}}, "target": {"name": "store", "table": "orders"}}],
                "import": {"source": {"name": "shop", "table": "v1/orders"}},
            },
            {
                "name": "two",
                "type": "target",
                "validity": {"start": "2024-05-01T00:00Z", "end": "2024-06-01T00:00Z"},
                "locations": {"data": "/lake/orders/${YEAR}${MONTH}${DAY}${HOUR}"},
                "export": [{"load": "replace", "queue": "night", "target": {"name": "reports", "table": "orders"}}],
            },
        ],
    }
    assert Feed.model_validate(found.data).name == "orders"


def test_what_the_whole_flow_says_holds_for_each_part() -> None:
    (found,) = made(
        flow(
            catch_up="skip",
            queue="day",
            sla={"low": "hours(1)", "high": "hours(2)"},
            retention={"limit": "days(7)"},
            properties={"parallel": "2"},
            notification={"on": ["FAILED"], "to": [{"url": {"env": "ON_CALL"}}]},
            acl={"owner": "etl"},
        )
    )
    deadlines = {"should_start_in": "hours(1)", "should_end_in": "hours(2)"}
    one, two = entries(found)["one"], entries(found)["two"]
    assert one["import"] == {
        "order": "LAST_ONLY",
        "sla": deadlines,
        "queue": "day",
        "source": {"name": "shop", "table": "v1/orders"},
    }
    assert two["export"][0]["queue"] == "night", "an export's own key"
    assert (one["retention"], two["retention"]) == ({"limit": "days(90)"}, {"limit": "days(7)"})
    assert found.data["properties"] == {"order": "LAST_ONLY", "parallel": "2"}
    assert found.data["sla"] == {"low": "hours(1)", "high": "hours(2)"}
    assert found.data["notification"] == {"on": ["FAILED"], "to": [{"url": {"env": "ON_CALL"}}]}
    assert found.data["acl"] == {"owner": "etl"}
    assert Feed.model_validate(found.data).clusters


def test_keys_know_which_keys_of_the_flow_they_are_made_of() -> None:
    (found,) = made(flow())
    origins = found.origins
    assert origins["clusters", 0, "import"] == ("source", "import")
    assert origins["clusters", 0, "import", "source"] == ("source", "dataset")
    assert origins["clusters", 0, "export", 0, "target", "name"] == ("destinations", 0, "datasource")
    assert origins["clusters", 0, "retention"] == ("destinations", 1, "retention")
    assert origins["clusters", 1] == ("destinations", 2)
    assert origins["clusters", 1, "locations", "data"] == ("destinations", 2, "dataset", "path")
    assert origins["groups",] == ("group",)


def test_a_cluster_as_source_is_not_imported_and_keeps_its_data() -> None:
    (found,) = made(
        flow(
            source={"cluster": "one", "dataset": {"path": "/in/${YEAR}/${MONTH}/${DAY}/${HOUR}"}},
            destinations=[{"cluster": "two"}],
            retention={"limit": "days(7)"},
        )
    )
    one, two = entries(found)["one"], entries(found)["two"]
    assert (one["type"], two["type"]) == ("source", "target")
    assert "import" not in one
    assert "retention" not in one, "what is not the flow's own is not removed by it"
    assert two["retention"] == {"limit": "days(7)"}


def test_without_copies_it_has_no_role() -> None:
    (found,) = made(flow(destinations=[{"datasource": "store", "dataset": {"table": "orders"}}]))
    assert [*entries(found)] == ["one"]
    assert "type" not in entries(found)["one"]


def test_two_imports_are_two_feeds_with_legal_names() -> None:
    clusters = [cluster("one"), cluster("two")]
    topology = Topology([SHOP, *clusters], [executor(one.name, ("http", "file")) for one in clusters])
    name = "x" * 39
    first, second = made(flow(name=name, destinations=[{"cluster": "one"}, {"cluster": "two"}]), topology)
    assert first.name == name
    assert second.name != name
    assert is_entity_name(second.name)
    assert [*entries(first), *entries(second)] == ["one", "two"]
    assert {one.data["tags"]["falcon/flow"] for one in (first, second)} == {name}
    again = made(flow(name=name, destinations=[{"cluster": "two"}, {"cluster": "one"}]), topology)
    assert {one.name for one in again} == {first.name, second.name}


def test_one_that_runs_once_has_one_instance() -> None:
    (found,) = made(flow(once=True, destinations=[{"cluster": "one"}]))
    feed = Feed.model_validate(found.data)
    assert feed_timeline(feed, "one").count == 1
    assert found.data["clusters"][0]["locations"]["data"].endswith("${HOUR}/${MINUTE}")


def test_a_schedule_begins_with_its_first_time() -> None:
    one = flow(schedule="30 2 * * *", destinations=[{"cluster": "one"}], timezone="Europe/Berlin")
    (found,) = made(one)
    assert found.data["clusters"][0]["validity"]["start"] == "2024-05-01T00:30Z"
    assert found.data["frequency"] == "days(1)"
    assert one.validity is not None
    assert instances_of(flow(schedule="0 0 1 */12 *"), one.validity) is None, "not before the end"


@pytest.mark.parametrize(
    ("said", "start"),
    [
        pytest.param({"schedule": "30 * * * *"}, "2024-05-15T10:30", id="next time"),
        pytest.param({"schedule": "30 * * * *", "run_immediately": True}, "2024-05-15T09:30", id="immediately"),
        pytest.param({}, "2024-05-15T10:07", id="frequency"),
        pytest.param({"once": True}, "2024-05-15T10:07", id="once"),
    ],
)
def test_a_submitted_flow_begins_now(said: dict[str, Any], start: str) -> None:
    now = datetime(2024, 5, 15, 10, 7, 31, tzinfo=UTC)
    assert submitted_start(flow(**said), now) == datetime.fromisoformat(start).replace(tzinfo=UTC)


@given(st.permutations(yaml.safe_load(STORY)["destinations"]))
def test_the_order_of_destinations_changes_only_where_problems_are_shown(destinations: list[dict[str, Any]]) -> None:
    assert [one.data for one in made(flow(destinations=destinations))] == [one.data for one in made(flow())]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"once": True, "frequency": "hours(1)"}, "exactly one of frequency, schedule and once"),
        ({"schedule": "0 */6 * * *", "timezone": "Europe/Berlin"}, "no even step in Europe/Berlin"),
        ({"destinations": [{"cluster": "one"}, {"cluster": "one"}]}, "destinations name 'one' twice"),
        ({"destinations": [{"cluster": "one", "datasource": "store"}]}, "needs datasource or cluster"),
        ({"destinations": [{"datasource": "store"}]}, "needs dataset: what of datasource 'store'"),
        ({"destinations": [{"datasource": "store", "dataset": {"path": "/x"}}]}, "has a table"),
        ({"destinations": [{"cluster": "one", "dataset": {"topic": "x"}}]}, "has a path, or a table"),
        ({"destinations": [{"cluster": "one", "export": {}}]}, "export is for datasources"),
        ({"destinations": [{"cluster": "one", "dataset": {"path": "/x", "table": "y"}}]}, "needs exactly one of table"),
        ({"source": {"cluster": "one"}}, "needs dataset: what on cluster 'one'"),
        ({"source": {"cluster": "two", "dataset": {"path": "/x"}}}, "'two' is source and destination"),
        ({"notification": {"to": [{"url": {"encrypted": "x"}}]}}, "write {env: NAME} or {file: PATH}"),
    ],
)
def test_what_cannot_be_meant_is_refused(said: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        flow(**said)


def test_changes_cannot_be_skipped() -> None:
    source = {"datasource": "shop", "dataset": {"table": "t"}, "import": {"extract": {"incremental": {"column": "c"}}}}
    with pytest.raises(ValueError, match="write catch_up: true"):
        flow(source=source, catch_up="skip")
