"""Replays where versions lie on S3 and Spark is a Connect server, and in tables of a Hive Metastore and of Iceberg."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.replay.operations import ReplayResult, replay_instance
from falcon_assets.features.versions.operations import instance_versions
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.runs.run_definitions import DefinitionRecording
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.storage.cluster_store import ClusterStore
from tests.builders import cluster_yaml
from tests.registries import Tables, endpoint_of, registry_of
from tests.s3_server import ENVIRON, lake, s3_server
from tests.world import run_instance

pytestmark = pytest.mark.soak
SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}"
ON_S3 = """format: json
availability_flag: _SUCCESS
locations: {data: "/NAME/${YEAR}-${MONTH}-${DAY}-${HOUR}"}"""
IN_TABLE = """format: parquet
table: {uri: "catalog:default:NAME#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}KEYS", create: true}"""
FEED = """---
kind: feed
name: NAME
frequency: hours(1)
versions: {keep: 5}
STORAGE
clusters: [{name: CLUSTER, SPAN}]
"""
PROCESS = """---
kind: process
name: NAME
clusters: [{name: CLUSTER, SPAN}]
frequency: hours(1)
inputs: [{name: rows, feed: FROM, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: TO, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: NAME.sql}
"""
SQL = {
    "count.sql": "SELECT flight, concat('f', flight) AS name, 'EU' AS region FROM rows",
    "add.sql": "SELECT name, flight + 1 AS More, region FROM rows",
    "draw.sql": "SELECT flight, rand() AS drawn FROM rows",
}
KEY = "2013-01-01T03:00Z"
HOUR = parse_instant(KEY)


def filled(text: str, **values: str) -> str:
    for name, value in {**values, "SPAN": SPAN}.items():
        text = text.replace(name, value)
    return text


def entities(cluster: str, storage: str) -> str:
    keys = {"landed": ";region=*", "counted": ";region=*", "added": "", "drawn": ""}
    return "".join(
        [
            *(filled(FEED, STORAGE=storage, NAME=name, KEYS=key) for name, key in keys.items()),
            filled(PROCESS, NAME="count", FROM="landed", TO="counted"),
            filled(PROCESS, NAME="add", FROM="counted", TO="added"),
            filled(PROCESS, NAME="draw", FROM="counted", TO="drawn"),
        ]
    ).replace("CLUSTER", cluster)


@dataclass
class World:
    """Everything was made twice, from other landed data."""

    cluster: str
    installation: Installation
    land: Callable[..., None]

    def replay(self, process: str, version: str | None = None, *, publish: bool = False) -> ReplayResult:
        request = InstanceRequest(InstanceQuery(process, start=HOUR))
        return replay_instance(self.installation, request, version, publish=publish)

    def kept(self, feed: str) -> str:
        return next(
            one.version for one in instance_versions(self.installation, feed, HOUR).versions if one.state == "KEPT"
        )

    def made_twice(self) -> None:
        for values in ((1, 2), (3,)):
            self.land(*values)
            collect_instances(self.installation, "landed", HOUR, HOUR)
            for process in ("count", "add", "draw"):
                run_instance(self.installation, process, KEY, self.cluster)


@pytest.fixture(scope="module", params=["s3", "hive", "iceberg"])
def world(
    request: pytest.FixtureRequest,
    settings: Any,
    instance: dg.DagsterInstance,
    write_entities: Callable[[dict[str, str]], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in ENVIRON.items():
            environment.setenv(name, value)
        if request.param == "s3":
            spark: Cluster = request.getfixturevalue("connect_cluster")
            with s3_server(tmp_path_factory.mktemp("s3")) as url:
                declared = lake(url, "s3", execute=spark.interfaces.execute.endpoint)
                root = write_entities(
                    {"all.yaml": cluster_yaml(**declared, properties={}) + entities("s3", ON_S3), **SQL}
                )
                with open_installation(settings, instance) as installation:
                    store = ClusterStore(load_entities(root).cluster("s3"), settings.home, ENVIRON)
                    store.fs.mkdir("lake")
                    yield recorded(World("s3", installation, lambda *values: landed_on(store, *values)), root)
            return
        endpoint = endpoint_of(request, request.param)
        interfaces = {"write": {"endpoint": f"data/{request.param}"}, "execute": {"endpoint": "local[2]"}}
        cluster = cluster_yaml(request.param, interfaces={**interfaces, "registry": registry_of(endpoint)})
        table = Tables(endpoint, settings.home)
        storage = IN_TABLE.replace(":NAME", f":NAME_{table.name}")
        root = write_entities({"all.yaml": cluster + entities(request.param, storage), **SQL})
        table.name = f"landed_{table.name}"
        table.make()
        with open_installation(settings, instance) as installation:

            def land(*values: int) -> None:
                table.land(("2013-01-01-03", "US"), *values)

            yield recorded(World(request.param, installation, land), root)


def recorded(world: World, root: Path) -> World:
    load_entities(root)
    DefinitionRecording(root, world.installation.settings).record(world.installation.ledger)
    world.made_twice()
    return world


def landed_on(store: ClusterStore, *values: int) -> None:
    folder = store.path("/landed/2013-01-01-03")
    lines = "".join(json.dumps({"flight": value}) + "\n" for value in values)
    store.fs.pipe_file(f"{folder}/part.json", lines.encode())
    store.fs.pipe_file(f"{folder}/_SUCCESS", b"")


def test_replays(world: World) -> None:
    """The present version, one that is kept from what is kept, what differs, and what cannot be."""
    done = world.replay("count")
    assert (done.outcome, [one.records for one in done.outputs], done.environment) == ("reproduced", [1], {})
    assert done.old == ()
    assert done.outputs[0].comparison is not None
    before = world.kept("added")
    old = world.replay("add", before)
    assert (old.outcome, old.outputs[0].records) == ("reproduced", 2), old
    assert old.outputs[0].comparison is not None
    other = world.replay("draw", world.kept("drawn"))
    assert other.outcome == "different"
    found = other.outputs[0].comparison
    assert found is not None and (found.columns, found.records, found.only) == ((), (2, 2), (2, 2))
    assert list(Path(other.folder).glob("out/*"))
    gone = world.replay("count", world.kept("counted"))
    assert gone.outcome == "impossible"
    assert f"rows: {world.cluster}/landed/2013-01-01T03:00Z@" in gone.impossible
    assert world.kept("added") == before


def test_a_replay_is_published(world: World) -> None:
    old = world.kept("added")
    done = world.replay("add", old, publish=True)
    assert (done.outcome, done.published) == ("reproduced", True)
    assert world.kept("added") != old
    again = world.replay("add")
    assert (again.outcome, again.outputs[0].records) == ("reproduced", 2)
