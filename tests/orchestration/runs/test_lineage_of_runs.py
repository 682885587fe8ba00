"""Which versions a published version came from, after real runs: clients, products, and what is made from both.

The instances of these feeds are versions: clients v15 are those of 15:00, and what is made from them is v15, too.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version as installed_version
from pathlib import Path

import dagster as dg
import pytest

from falcon_assets.errors import UnknownInstanceError
from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.lineage.asking import lineage_diff, lineage_impact, lineage_path, show_lineage
from falcon_assets.features.lineage.lifecycle_operations import prune_plan, set_lifecycle
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.features.openlineage.operations import export_openlineage
from falcon_assets.features.retention.operations import PlanRetention
from falcon_assets.features.retention.passes import RetentionPass
from falcon_assets.instances.runs.run_definitions import DefinitionRecording
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.audit import PlainRequest
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings
from tests.builders import cluster_yaml, land_rows
from tests.features.openlineage.schemas import assert_valid
from tests.world import run_instance

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}"
FEED = """---
kind: feed
name: {name}
schedule: true
frequency: hours(1)
availability_flag: _SUCCESS
format: json
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: primary, {span}, retention: {{limit: days(1)}}}}]
"""
PROCESS = """---
kind: process
name: {name}
clusters: [{{name: primary, {span}}}]
frequency: hours(1)
inputs: [{inputs}]
outputs: [{{name: out, feed: {output}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: {name}.sql}}
"""
FEEDS = ["clients", "products", "names-and-products", "product-summary"]
CLIENTS = '{name: clients, feed: clients, start: "now(0,0)", end: "now(0,0)"}'
PRODUCTS = '{name: products, feed: products, start: "latest(0)", end: "latest(0)"}'
NAMES = '{name: names, feed: names-and-products, start: "now(0,0)", end: "now(0,0)"}'
ENTITIES = (
    cluster_yaml()
    + "".join(FEED.format(name=name, span=SPAN) for name in FEEDS)
    + PROCESS.format(name="one", inputs=f"{CLIENTS}, {PRODUCTS}", output="names-and-products", span=SPAN)
    + PROCESS.format(name="two", inputs=NAMES, output="product-summary", span=SPAN)
)
FILES = {
    "all.yaml": ENTITIES,
    "one.sql": "SELECT clients.v AS client, products.v AS product FROM clients CROSS JOIN products",
    "two.sql": "SELECT count(*) AS n, max(client) AS client FROM names",
}


def land(settings: Settings, feed: str, hour: int, value: int) -> None:
    land_rows(settings.home / f"data/primary/{feed}/2013-01-01-{hour:02}", {"v": value})


@pytest.fixture(scope="module")
def world(
    settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> Iterator[Installation]:
    """Clients v15 and v16, products v3; the process one made v15 and v16 of both in two runs, the process two v16."""
    write_entities(FILES)
    with open_installation(settings, instance) as installation:
        DefinitionRecording(settings.entity_defs, settings).record(installation.ledger)
        for feed, hour, value in (("clients", 15, 15), ("clients", 16, 16), ("products", 3, 3)):
            land(settings, feed, hour, value)
            see(installation, feed)
        run_instance(installation, "one", "2013-01-01T15:00Z")
        run_instance(installation, "one", "2013-01-01T16:00Z")
        run_instance(installation, "two", "2013-01-01T16:00Z")
        yield installation


def see(installation: Installation, feed: str) -> None:
    start, end = (parse_instant(f"2013-01-01T{hour}:00Z") for hour in ("00", "23"))
    collect_instances(installation, feed, start, end)


def asked(feed: str, hour: int) -> VersionQuery:
    return VersionQuery(feed, parse_instant(f"2013-01-01T{hour:02}:00Z"))


def named(installation: Installation, query: VersionQuery, *, up: bool) -> set[str]:
    found = show_lineage(installation, query, up=up, down=not up)
    others = (one for one in found.graph.versions.values() if one.number != found.version.number)
    return {f"{one.feed} v{one.instance.hour}" for one in others}


def test_a_version_came_from_exactly_what_it_was_made_from(world: Installation) -> None:
    summary = asked("product-summary", 16)
    assert named(world, summary, up=True) == {"names-and-products v16", "clients v16", "products v3"}
    assert named(world, asked("names-and-products", 15), up=True) == {"clients v15", "products v3"}
    assert named(world, asked("clients", 15), up=False) == {"names-and-products v15"}
    assert named(world, asked("products", 3), up=False) == {
        *("names-and-products v15", "names-and-products v16", "product-summary v16")
    }


def test_who_made_it_is_said(world: Installation) -> None:
    found = show_lineage(world, asked("product-summary", 16))
    data = found.as_data()
    told = {
        key: data["version"][key] for key in ("process", "nominal_time", "attempt", "definition", "records", "status")
    }
    assert told == {
        **{"process": "two", "nominal_time": "2013-01-01T16:00Z", "attempt": 1, "definition": 1},
        **{"records": 1, "status": "AVAILABLE"},
    }
    assert len(data["version"]["code"]) == 64
    assert data["version"]["made_by"] == world.settings.user
    assert data["version"]["environment"]["python"] == platform.python_version()
    assert found.version.path == str(world.settings.home / "data/primary/product-summary/2013-01-01-16")
    assert {one["process"] for one in data["edges"]} == {"one", "two"}
    assert all(one["run"] and one["declared"] and one["definition"] == 1 for one in data["edges"])
    assert {key for node in data["nodes"] for key in node} == {
        *("id", "cluster", "feed", "instance", "version", "status", "exists")
    }


def test_real_runs_as_openlineage(world: Installation) -> None:
    events = list(export_openlineage(world, ["one"]))
    for event in events:
        assert_valid(event)
    of_v15, of_v16 = (events[number : number + 2] for number in (0, 2))
    assert [one["eventType"] for one in events] == ["START", "COMPLETE"] * 2
    assert len({one["run"]["runId"] for one in of_v15}) == 1
    root = f"{world.settings.home}/data/primary"
    end = of_v16[1]
    versions = {one["name"]: one["facets"]["version"]["datasetVersion"] for one in end["inputs"]}
    assert {name: version[:17] for name, version in versions.items()} == {
        f"{root}/clients": "2013-01-01T16:00Z",
        f"{root}/products": "2013-01-01T03:00Z",
    }
    (made,) = end["outputs"]
    assert (made["namespace"], made["name"]) == ("file", f"{root}/names-and-products")
    assert made["outputFacets"]["outputStatistics"]["rowCount"] == 1
    fields = made["facets"]["columnLineage"]["fields"]
    assert [(one["name"], one["field"]) for one in fields["client"]["inputFields"]] == [(f"{root}/clients", "v")]
    facets = end["run"]["facets"]
    assert facets["processing_engine"]["version"] == installed_version("pyspark")
    assert facets["parent"]["job"]["name"] == "primary__one_job"
    assert "name: one" in end["job"]["facets"]["sourceCode"]["sourceCode"]


def test_how_one_came_from_another(world: Installation) -> None:
    found = lineage_path(world, asked("clients", 16), asked("product-summary", 16))
    assert [one.feed for one in (found.version, *found.derived)] == ["clients", "names-and-products", "product-summary"]
    with pytest.raises(
        UnknownInstanceError, match=r"product-summary/2013-01-01T16:00Z@\w+ was not made from primary/cl"
    ):
        lineage_path(world, asked("clients", 15), asked("product-summary", 16))


def test_a_critical_summary_protects_what_it_came_from_and_nothing_else(world: Installation) -> None:
    long_after = parse_instant("2013-02-01T00:00Z")

    def stay() -> dict[str, str]:
        verdicts = [
            (f"{plan.feed.name} v{one.instance.nominal.hour}", one.reason)
            for plan in PlanRetention(as_of=long_after).run(world)
            for one in plan.verdicts
            if one.action == "keep"
        ]
        return dict(verdicts)

    assert stay() == {}
    done = set_lifecycle(world, asked("product-summary", 16), "critical", PlainRequest(reason="in the report"))
    protects = {f"{one.feed} v{one.instance.hour}" for one in done.ancestors}
    assert protects == {"names-and-products v16", "clients v16", "products v3"}
    assert stay() == {
        "product-summary v16": f"{done.version.id} is critical",
        **dict.fromkeys(protects, f"{done.version.id} is critical, and was made from it"),
    }
    plan = prune_plan(world)
    assert {f"{one.feed} v{one.instance.hour}" for one in plan.goes} == {"names-and-products v15", "clients v15"}
    assert plan.bytes == sum(one.bytes or 0 for one in plan.goes) > 0
    set_lifecycle(world, asked("product-summary", 16), "validated", PlainRequest(reason="there is a better one"))
    assert stay() == {}
    alone = prune_plan(world, [asked("product-summary", 16)])
    assert {f"{one.feed} v{one.instance.hour}" for one in alone.needed} == {"clients v16", "products v3"}
    between = {f"{one.feed} v{one.instance.hour}" for one in alone.goes}
    assert between == {"names-and-products v15", "names-and-products v16", "clients v15"}


def test_a_rerun_with_other_clients_leaves_the_version_before(
    world: Installation, instance: dg.DagsterInstance
) -> None:
    before = show_lineage(world, asked("names-and-products", 15)).version
    land(world.settings, "clients", 15, 150)
    see(world, "clients")
    run_instance(world, "one", "2013-01-01T15:00Z")
    found = lineage_diff(world, asked("names-and-products", 15))
    assert (found.before.number, found.before.status.value) == (before.number, "REPLACED")
    assert found.causes == ["1 input differs"]
    assert [one.place[1] for one in found.inputs] == ["clients"]
    old = lineage_impact(
        world, VersionQuery("clients", parse_instant("2013-01-01T15:00Z"), version=found.inputs[0].before[0])
    )
    assert ([one.number for one in old.derived], old.recompute) == ([before.number], [])
    new = lineage_impact(world, asked("clients", 15))
    assert new.recompute == [("one", "primary", parse_instant("2013-01-01T15:00Z"))]


def test_retention_takes_clients_v15_and_leaves_what_the_critical_summary_was_made_from(world: Installation) -> None:
    """The whole of it: what is left on the disk, what is recorded, and what can still be made again."""
    done = set_lifecycle(world, asked("product-summary", 16), "critical", PlainRequest(reason="in the report"))
    settings = replace(world.settings, clock=Clock(origin=parse_instant("2013-02-01T00:00Z")))
    store = world.entities
    feeds = [store.feed(name) for name in FEEDS]

    def record(events: Sequence[dg.AssetObservation]) -> None:
        for event in events:
            world.ledger.instance.report_runless_asset_event(event)

    passed = RetentionPass(store, store.cluster("primary"), feeds, settings, 0).run(world.ledger, "a-pass", record)
    world.ledger.catch_up()
    assert (passed.instances, passed.problems) == (2, ())
    data = world.settings.home / "data/primary"
    left = {f"{flag.parent.parent.name} v{int(flag.parent.name[-2:])}" for flag in data.glob("*/*/_SUCCESS")}
    assert left == {"clients v16", "products v3", "names-and-products v16", "product-summary v16"}
    gone = show_lineage(world, asked("clients", 15)).version
    assert (gone.status.value, gone.exists) == ("EVICTED", False)
    plan = prune_plan(world)
    assert ([one.number for one in plan.wanted], plan.impossible, plan.goes) == ([done.version.number], [], [])
    named_there = {f"{one.feed} v{one.instance.hour}" for one in plan.protected}
    assert named_there == left
