"""What an instance of a replication copies; who writes, read and will read an instance of a feed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from falcon_assets.errors import UnknownEntityError, UnknownInstanceError
from falcon_assets.history.tables import CONSUMED
from falcon_assets.instances.views.details import instance_details
from falcon_assets.instances.views.feed_dependencies import feed_instance_dependencies
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.input_windows import input_instances
from falcon_assets.planning.timeline import feed_timeline
from tests.builders import cluster_yaml
from tests.operations.rows import feed_row, fill, process_row, write

START = parse_instant("2013-04-02T00:00Z")
SPAN = "validity: {start: 2013-04-02T00:00Z, end: 2013-04-05T00:00Z}"
CLUSTERS = "".join(map(cluster_yaml, ("primary", "second", "backup")))
WINDOWS = {
    "hour": ("now(0,0)", "now(0,0)"),
    "before": ("now(-3,0)", "now(-1,0)"),
    "day": ("today(0,0)", "now(0,0)"),
    "yesterday": ("yesterday(0,0)", "yesterday(23,0)"),
}
ENTITIES = f"""{CLUSTERS}---
kind: feed
name: raw
frequency: hours(1)
properties: {{maxMaps: "3", overwrite: "true"}}
locations: {{data: "/raw/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters:
  - {{name: primary, type: source, {SPAN}}}
  - {{name: backup, type: target, {SPAN}}}
---
kind: feed
name: made
frequency: hours(1)
locations: {{data: "/made/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, {SPAN}}}]
---
kind: feed
name: twice
frequency: hours(1)
partitions: [part]
locations: {{data: "/twice/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters:
  - {{name: primary, type: source, partition: a, {SPAN}}}
  - {{name: second, type: source, partition: b, {SPAN}}}
  - {{name: backup, type: target, {SPAN}}}
---
kind: process
name: make
frequency: hours(1)
clusters: [{{name: primary, {SPAN}}}]
inputs: [{{name: newest, feed: raw, start: "latest(0)", end: "latest(0)"}}]
outputs: [{{name: out, feed: made, instance: "now(-1,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
""" + "".join(
    f"""---
kind: process
name: {name}
frequency: {"minutes(90)" if name == "day" else "hours(1)"}
clusters: [{{name: primary, {SPAN}}}]
inputs: [{{name: rows, feed: raw, start: "{start}", end: "{end}"}}]
workflow: {{engine: spark-sql, path: a.sql}}
"""
    for name, (start, end) in WINDOWS.items()
)
COPY = "raw from primary"


def hour(number: int) -> datetime:
    return START + timedelta(hours=number)


@pytest.fixture(scope="module")
def installation(installed: Callable[[str], Installation]) -> Installation:
    return installed(ENTITIES)


def read(process: str, cluster: str, nominal: datetime, version: str | None, *, stale: bool = False) -> dict[str, Any]:
    about = {"feed": "raw", "instance": hour(5), "input_cluster": "primary", "read_event": 1, "stale": stale}
    return {"process": process, "cluster": cluster, "nominal": nominal, "input": "rows", "version": version, **about}


def test_a_replication_says_what_it_copies(installation: Installation) -> None:
    home = installation.settings.home / "data"
    for name in ("raw", COPY):
        found = instance_details(installation, name, hour(3))
        params = found.params()
        assert (params["entity"], params["cluster"], params["state"]) == (COPY, "backup", "WAITING")
        told = params["params"]
        assert told["from"] == f"{home}/primary/raw/2013-04-02/03"
        assert told["to"] == f"{home}/backup/raw/2013-04-02/03"
        assert {name: told[name] for name in ("feed", "source", "target", "maxMaps", "overwrite", "order")} == {
            "feed": "raw",
            "source": "primary",
            "target": "backup",
            "maxMaps": "3",
            "overwrite": "true",
            "order": "FIFO",
        }
        data = found.dependencies()
        assert data["inputs"] == [
            {
                "name": "source",
                "feed": "raw",
                "instance": "2013-04-02T03:00Z",
                "path": told["from"],
                "available": False,
                "optional": False,
            }
        ]
        assert [one["path"] for one in data["outputs"]] == [told["to"]]
    assert instance_details(installation, "twice from second", hour(0)).params()["params"]["partition"] == "b"


MISTAKES = {
    "several": ("twice", 0, None, UnknownEntityError, "say which one: 'twice from primary' --cluster backup, 'twice"),
    "not replicated": ("made", 0, None, UnknownEntityError, "feed 'made' is not replicated to a cluster"),
    "not there": ("raw", 0, "primary", UnknownEntityError, "'raw' is not replicated to cluster 'primary'"),
    "instance": (COPY, -1, None, UnknownInstanceError, "'raw from primary' to cluster 'backup' has no instance"),
    "name": ("rw", 0, None, UnknownEntityError, "there is no process 'rw'"),
}


@pytest.mark.parametrize(("name", "at", "cluster", "error", "text"), MISTAKES.values(), ids=MISTAKES)
def test_what_is_no_replication(
    installation: Installation, name: str, at: int, cluster: str | None, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        instance_details(installation, name, hour(at), cluster)


def test_who_deals_with_an_instance_of_a_feed(installation: Installation) -> None:
    write(installation, feed_row("raw", hour(5)))
    fill(installation, CONSUMED, read("hour", "primary", hour(5), "v"), read(COPY, "backup", hour(5), "u", stale=True))
    found = feed_instance_dependencies(installation, "raw", hour(5), "primary").as_data()
    assert (found["entity"], found["kind"], found["state"], found["written_by"]) == ("raw", "feed", "AVAILABLE", [])
    common = {"instance": "2013-04-02T05:00Z", "input": "rows"}
    assert found["read_by"] == [
        {"entity": "hour", "cluster": "primary", **common, "version": "v", "stale": False},
        {"entity": COPY, "cluster": "backup", **common, "version": "u", "stale": True},
    ]
    by_name = {one["entity"]: one for one in found["will_read"]}
    assert set(by_name) == {"make", "before", "day", "yesterday"}
    assert by_name["make"]["number"] is None
    span = {"number": 3, "first": "2013-04-02T06:00Z", "last": "2013-04-02T08:00Z"}
    about = {"entity": "before", "kind": "process", "cluster": "primary", "input": "rows"}
    assert by_name["before"] == {**about, **span}


@pytest.mark.parametrize("at", [0, 5, 30, 71])
def test_whoever_has_it_in_a_window_will_read_it(installation: Installation, at: int) -> None:
    """Against the windows of all instances of all processes."""
    found = feed_instance_dependencies(installation, "raw", hour(at), "primary")
    known = {one.key for one in found.readings}
    timeline = feed_timeline(installation.entities.feed("raw"), "primary")
    for name in WINDOWS:
        (workload,) = installation.entities.workloads_of(name)
        (declared,) = workload.inputs
        expected = [
            nominal
            for nominal in workload.timeline.until(hour(999))
            if hour(at) in input_instances(declared, timeline, nominal, "UTC")
            and (name, "primary", nominal) not in known
        ]
        assert [list(one.nominals or ()) for one in found.future if one.workload is workload] == [expected] * bool(
            expected
        )


def test_who_writes_it(installation: Installation) -> None:
    write(installation, process_row("make", hour(6), "FAILED"))
    (writer,) = feed_instance_dependencies(installation, "made", hour(5)).as_data()["written_by"]
    about = {"entity": "make", "kind": "process", "cluster": "primary"}
    assert writer == {**about, "instance": "2013-04-02T06:00Z", "state": "FAILED"}
    copies = feed_instance_dependencies(installation, "twice", hour(5), "backup").as_data()["written_by"]
    assert [(one["entity"], one["state"]) for one in copies] == [
        ("twice from primary", "WAITING"),
        ("twice from second", "WAITING"),
    ]
    with pytest.raises(UnknownEntityError, match=r"say which one with --cluster \(primary, second, backup\)"):
        feed_instance_dependencies(installation, "twice", hour(5))
    with pytest.raises(UnknownEntityError, match="feed 'made' is not on cluster 'backup'; it is on: primary"):
        feed_instance_dependencies(installation, "made", hour(5), "backup")
    with pytest.raises(UnknownInstanceError, match="made has no instance 2013-04-01T23:00Z"):
        feed_instance_dependencies(installation, "made", hour(-1))
