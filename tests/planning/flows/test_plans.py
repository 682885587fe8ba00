"""Plans of flows over clusters, executors and datasources as they are declared."""

from __future__ import annotations

from typing import Any

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.flow import Flow
from falcon_assets.planning.flows.plans import ExecutorNow, FlowPlan, FlowPlanner
from tests.builders import make_cluster

EVERY = {
    "kind": "flow",
    "name": "orders",
    "frequency": "hours(1)",
    "source": {"datasource": "shop", "dataset": {"table": "orders"}},
    "destinations": [{"cluster": "lake"}],
    "validity": {"start": "2024-05-01T00:00Z", "end": "2024-06-01T00:00Z"},
}
LOAD = {"load": {"upsert": {"key": ["id"]}}}
STORE = {"datasource": "store", "dataset": {"table": "orders"}, "export": LOAD}


def on(name: str, *executors: dict[str, Any], **overrides: Any) -> Cluster:
    return make_cluster(name=name, executors=executors, **overrides)


def executor(name: str, *capabilities: tuple[str, str], **more: Any) -> dict[str, Any]:
    can = {"capabilities": capabilities} if capabilities else {}
    return {"name": name, "endpoint": "local[1]", **can, **more}


def datasource(name: str, type_: str, *interfaces: str) -> Datasource:
    said = {one: {"endpoint": f"{type_}://127.0.0.1:9/{name}"} for one in interfaces or ("readonly", "write")}
    return Datasource.model_validate({"kind": "datasource", "name": name, "type": type_, "interfaces": said})


DATASOURCES = {one.name: one for one in (datasource("shop", "mysql"), datasource("store", "postgresql"))}


def planned(*clusters: Cluster, states: Any = None, datasources: Any = None, **overrides: Any) -> FlowPlan:
    flow = Flow.model_validate({**EVERY, **overrides})
    assert flow.validity is not None
    planner = FlowPlanner({one.name: one for one in clusters}, datasources or DATASOURCES, states)
    return planner.plan(flow, flow.validity)


def hops(plan: FlowPlan) -> list[str]:
    return [f"{hop.source[1]} {hop.target[1]} {hop.step.executor}" for hop in plan.route.hops] if plan.route else []


def test_a_cluster_whose_executors_say_nothing_can_do_all() -> None:
    assert hops(planned(on("lake"), destinations=[{"cluster": "lake"}, STORE])) == [
        "shop lake default",
        "lake store default",
    ]


def test_capabilities_decide_where_data_goes() -> None:
    east = on("east", executor("reads", ("mysql", "file")))
    west = on("west", executor("sends", ("file", "file"), ("file", "postgresql")))
    assert hops(planned(east, west, destinations=[STORE])) == [
        "shop east reads",
        "east west sends",
        "west store sends",
    ]
    (feed,) = planned(east, west, destinations=[STORE]).feeds
    assert [entry["locations"]["data"] for entry in feed.data["clusters"]] == [
        "/flows/orders/${YEAR}-${MONTH}-${DAY}/${HOUR}"
    ] * 2, "both are on the way"


def test_tables_are_kinds_of_places() -> None:
    registry = {"endpoint": "iceberg+postgresql://falcon@127.0.0.1:9/catalog#one"}
    interfaces = {"write": {"endpoint": "data/lake"}, "execute": {"endpoint": "local[1]"}, "registry": registry}
    end = {"cluster": "lake", "dataset": {"table": "catalog:sales:orders#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}"}}
    iceberg = on("lake", executor("tables", ("mysql", "iceberg")), interfaces=interfaces)
    (feed,) = planned(iceberg, destinations=[end]).feeds
    assert feed.data["clusters"][0]["table"] == {"uri": "catalog:sales:orders#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}"}
    assert planned(on("lake", executor("files", ("mysql", "file"))), destinations=[end]).waits == (
        "no executor of cluster 'lake' can import from datasource 'shop': "
        "one of them needs the capability [mysql, hive]",
    )


def test_what_is_missing_is_what_it_waits_for() -> None:
    reports = datasource("reports", "postgresql", "readonly")
    plan = planned(
        on("lake"),
        datasources={**DATASOURCES, "reports": reports},
        destinations=[{"datasource": "reports", "dataset": {"table": "orders"}}],
    )
    assert (plan.route, plan.feeds) == (None, ())
    assert plan.waits == ("datasource 'reports' has no interface that it is written to",)
    assert planned(on("lake"), frequency=None, schedule="0 0 1 */12 *").waits == (
        "schedule has no time between start and end of validity",
    )


def test_a_copy_of_a_copy_is_not_made() -> None:
    registry = {"endpoint": "thrift://127.0.0.1:9"}
    interfaces = {"write": {"endpoint": "data/west"}, "execute": {"endpoint": "local[1]"}, "registry": registry}
    east = on("east", executor("reads", ("mysql", "file")))
    west = on("west", executor("loads", ("file", "hive")), interfaces=interfaces)
    far = on("far", executor("takes", ("hive", "file")))
    uri = "catalog:sales:orders#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}"
    ends = [{"cluster": "west", "dataset": {"table": uri}}, {"cluster": "far"}]
    assert planned(east, west, far, destinations=ends).waits == (
        "cluster 'far' would have a copy of a copy, on 'west': an executor of cluster 'far' needs the capability "
        "[file, file], to copy from 'east' itself",
    )


def test_the_executor_of_a_queue_takes_its_imports_and_exports_only() -> None:
    lake = on("lake", executor("night", queue="night"))
    assert hops(planned(lake, queue="night")) == ["shop lake night"]
    assert planned(lake).waits == (
        "no executor of cluster 'lake' can import from datasource 'shop': "
        "one of them needs the capability [mysql, file]",
    )
    other = on("other", executor("copies", ("file", "file")))
    ends = [{"cluster": "lake"}, {"cluster": "other"}]
    assert hops(planned(lake, other, queue="night", destinations=ends)) == ["shop lake night", "lake other copies"]


def test_load_and_health_choose_among_equal_ways() -> None:
    clusters = [on("east", executor("reads")), on("west", executor("reads"))]
    states = {("east", "reads"): ExecutorNow(0.8), ("west", "reads"): ExecutorNow(0.1)}
    assert hops(planned(*clusters, destinations=[STORE])) == ["shop east reads", "east store reads"]
    assert hops(planned(*clusters, states=states, destinations=[STORE])) == ["shop west reads", "west store reads"]
    offline = {("east", "reads"): ExecutorNow(is_online=False)}
    assert hops(planned(*clusters, states=offline, destinations=[STORE])) == ["shop west reads", "west store reads"]
