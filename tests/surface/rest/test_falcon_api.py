"""Apache Falcon's own paths: each as its documentation shows it, with bodies and answers in its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from defusedxml import ElementTree

from falcon_assets.model.access import Role
from falcon_assets.settings import Settings
from falcon_assets.surface.rest.falcon.paths import PATHS
from falcon_assets.surface.served import ServedInstallation, open_served
from tests.builders import cluster_yaml, feed_yaml, process_yaml
from tests.processes import CHECKOUT
from tests.surface.rest.servers import Client, serving

FEED = """<?xml version="1.0" encoding="UTF-8"?>
<feed description="Input data" name="{name}" xmlns="uri:falcon:feed:0.1">
    <tags>consumer=consumer@xyz.com,owner=producer@xyz.com</tags>
    <groups>online</groups>
    <frequency>hours(1)</frequency>
    <late-arrival cut-off="hours(6)" />
    <clusters>
        <cluster name="primary" type="source">
            <validity start="2013-01-01T00:00Z" end="2014-01-01T00:00Z"/>
            <retention limit="{limit}" action="delete" />
        </cluster>
    </clusters>
    <locations>
        <location type="data" path="/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}" />
    </locations>
    <ACL owner="testuser" group="group" permission="0x755"/>
    <schema location="/none" provider="none"/>
</feed>
"""
HOURS = {"start": "2013-01-01T01:00Z", "end": "2013-01-01T02:00Z"}
MAKE = "process/make"
RAW = "feed/raw"


@pytest.fixture(scope="module")
def served(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[ServedInstallation]:
    entities = cluster_yaml("primary", colo="east") + feed_yaml("raw", tags={"owner": "etl"}) + feed_yaml("made")
    own = process_yaml("make", "raw", "made", pipelines=["flights"])
    write_entities({"all.yaml": entities + own, "a.sql": "SELECT 1"})
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FALCON_CLOCK", "2013-01-01T06:30Z")
        environment.setenv("FALCON_WEBSERVER_URL", "")
        with open_served(seconds=30) as found:
            yield found


@pytest.fixture(scope="module")
def root(served: ServedInstallation) -> Iterator[Client]:
    with serving(served) as client:
        yield client


def ask(root: Client, row: tuple[str, str], name: str = "", **how: Any) -> Any:
    """A request to a path of the table, whose parameters are ``kind/name``."""
    method, path = row
    kind, _, entity = name.partition("/")
    for parameter, value in {"{kind}": kind, "{name}": entity, "{dimension}": kind, "{cluster}": entity}.items():
        path = path.replace(parameter, value)
    return root.ask(method, path, **how)


def xml(limit: str = "hours(9)", name: str = "SampleInput") -> dict[str, Any]:
    return {"data": FEED.format(name=name, limit=limit), "headers": {"Content-Type": "text/xml"}}


def message(text: str) -> Callable[[Any], bool]:
    return lambda said: said["status"] == "SUCCEEDED" and said["message"].strip() == text and "requestId" in said


def has_instances(text: str, states: set[str]) -> Callable[[Any], bool]:
    def fits(said: Any) -> bool:
        assert said["message"] == f"default/{text}\n"
        found = said["instances"]
        assert all(one["instance"].endswith("Z") and one["cluster"] == "primary" for one in found)
        return {one["status"] for one in found} == states

    return fits


ROWS: list[tuple[str, str, str, dict[str, Any], Callable[[Any], bool]]] = [
    ("POST", "/api/entities/validate/{kind}", "feed", xml(), message("Validated successfully (FEED) SampleInput")),
    ("POST", "/api/entities/submit/{kind}", "feed", xml(), message("default/Submit successful (feed) SampleInput")),
    (
        *("POST", "/api/entities/update/{kind}/{name}", "feed/SampleInput", xml("hours(8)")),
        message("default/SampleInput updated successfully"),
    ),
    (
        *("POST", "/api/entities/schedule/{kind}/{name}", MAKE, {}),
        message("default/make(process) scheduled successfully"),
    ),
    (
        *("POST", "/api/entities/suspend/{kind}/{name}", MAKE, {}),
        message("default/make(process) suspended successfully"),
    ),
    ("GET", "/api/entities/status/{kind}/{name}", MAKE, {}, message("default/SUSPENDED")),
    ("POST", "/api/entities/resume/{kind}/{name}", MAKE, {}, message("default/make(process) resumed successfully")),
    ("POST", "/api/entities/touch/{kind}/{name}", MAKE, {}, message("default/make updated successfully")),
    (
        *("POST", "/api/entities/submitAndSchedule/{kind}", "feed", xml(name="Other")),
        message("default/Other(feed) scheduled successfully\n\nSubmit successful (feed) Other"),
    ),
    (
        *("DELETE", "/api/entities/delete/{kind}/{name}", "feed/Other", {}),
        message("default/Other(feed) removed successfully"),
    ),
    ("GET", "/api/entities/list", "", {}, lambda said: said["totalResults"] == 5),
    (
        *("GET", "/api/entities/list/{kind}", "feed,process"),
        {"params": {"fields": "status,tags,pipelines,clusters", "filterBy": "NAME:make", "orderBy": "name"}},
        lambda said: (
            said["entity"]
            == [
                {
                    **{"type": "process", "name": "make", "status": "RUNNING"},
                    **{"pipelines": {"pipeline": ["flights"]}, "clusters": {"cluster": ["primary"]}},
                }
            ]
        ),
    ),
    (
        *("GET", "/api/entities/dependencies/{kind}/{name}", MAKE, {}),
        lambda said: {"name": "raw", "type": "feed", "tag": ["Input"]} in said["entity"],
    ),
    (
        *("GET", "/api/entities/lookup/feed", "", {"params": {"path": "/raw/2013-01-01/02"}}),
        lambda said: said["feeds"] == [{"feedName": "raw", "locationType": "DATA", "clusterName": "primary"}],
    ),
    (
        *("GET", "/api/entities/summary/{kind}/{cluster}", "process/primary"),
        {"params": {"fields": "status", "numInstances": "2", "filterBy": "NAME:make"}},
        lambda said: (
            [one["name"] for one in said["entitySummary"]] == ["make"]
            and said["entitySummary"][0]["status"] == "RUNNING"
            and len(said["entitySummary"][0]["instances"]) == 2
        ),
    ),
    (
        *("GET", "/api/entities/sla-alert/feed", "", {"params": {"start": "2013-01-01T00:00Z"}}),
        lambda said: said["message"] == "default/Success!\n" and said["instances"] == [],
    ),
    ("GET", "/api/instance/running/{kind}/{name}", MAKE, {}, has_instances("Running Instances", set())),
    ("GET", "/api/instance/status/{kind}/{name}", MAKE, {"params": HOURS}, has_instances("STATUS", {"WAITING"})),
    ("GET", "/api/instance/list/{kind}/{name}", MAKE, {"params": HOURS}, has_instances("STATUS", {"WAITING"})),
    ("GET", "/api/instance/listing/feed/{name}", RAW, {"params": HOURS}, has_instances("LISTING", {"MISSING"})),
    (
        *("GET", "/api/instance/search", "", {"params": {"nameseq": "MAKE", "orderBy": "nominalTime"}}),
        lambda said: {one["name"] for one in said["instances"]} == {"make"},
    ),
    (
        *("GET", "/api/instance/summary/{kind}/{name}", MAKE, {"params": HOURS}),
        lambda said: said["instancesSummary"][0]["map"]["entry"] == [{"key": "WAITING", "value": "2"}],
    ),
    (
        *("GET", "/api/instance/logs/{kind}/{name}", MAKE, {"params": HOURS}),
        lambda said: (
            [one["actions"] for one in said["instances"]] == [[], []]
            and said["instances"][0]["logFile"].endswith("/instances/make/2013-01-01T01:00Z/logs?cluster=primary")
        ),
    ),
    (
        *("GET", "/api/instance/params/{kind}/{name}", MAKE, {"params": {"start": "2013-01-01T01:00Z"}}),
        lambda said: {"key": "nominal_time", "value": "2013-01-01T01:00Z"} in said["instances"][0]["params"]["entry"],
    ),
    (
        *("GET", "/api/instance/dependencies/{kind}/{name}", MAKE, {"params": {"instanceTime": "2013-01-01T01:00Z"}}),
        lambda said: (
            [(one["type"], one["entityName"], one["instanceTime"]) for one in said["dependencies"]]
            == [("Input", "raw", "2013-01-01T01:00Z"), ("Output", "made", "2013-01-01T01:00Z")]
        ),
    ),
    (
        *("GET", "/api/instance/dependencies/{kind}/{name}", "feed/made"),
        {"params": {"instanceTime": "2013-01-01T01:00Z"}},
        lambda said: (
            said["dependencies"]
            == [
                {
                    **{"cluster": "primary", "entityName": "make", "entityType": "PROCESS"},
                    **{"instanceTime": "2013-01-01T01:00Z", "type": "Output"},
                }
            ]
        ),
    ),
    (
        *("GET", "/api/instance/triage/{kind}/{name}", "feed/made", {"params": {"start": "2013-01-01T01:00Z"}}),
        lambda said: (
            said
            == {
                "vertices": [
                    "(FEED) made (2013-01-01T01:00Z) [Unavailable]",
                    "(PROCESS) make (2013-01-01T01:00Z) [WAITING]",
                    "(FEED) raw (2013-01-01T01:00Z) [Unavailable]",
                ],
                "edges": [
                    {
                        "from": "(PROCESS) make (2013-01-01T01:00Z) [WAITING]",
                        "to": "(FEED) made (2013-01-01T01:00Z) [Unavailable]",
                        "label": "produces",
                    },
                    {
                        "from": "(FEED) raw (2013-01-01T01:00Z) [Unavailable]",
                        "to": "(PROCESS) make (2013-01-01T01:00Z) [WAITING]",
                        "label": "consumed by",
                    },
                ],
            }
        ),
    ),
    (
        *("POST", "/api/instance/suspend/{kind}/{name}", MAKE, {"params": HOURS}),
        has_instances("SUSPEND", {"SUSPENDED"}),
    ),
    ("POST", "/api/instance/resume/{kind}/{name}", MAKE, {"params": HOURS}, has_instances("RESUME", {"RUNNING"})),
    ("POST", "/api/instance/kill/{kind}/{name}", MAKE, {"params": HOURS}, has_instances("KILL", {"KILLED"})),
    ("POST", "/api/instance/rerun/{kind}/{name}", MAKE, {"params": HOURS}, has_instances("RERUN", {"RUNNING"})),
    (
        *("GET", "/api/admin/version", "", {}),
        lambda said: [one["key"] for one in said["properties"]] == ["Version", "Mode", "authentication", "safemode"],
    ),
    (
        *("GET", "/api/metadata/discovery/{dimension}/list", "process_entity", {}),
        lambda said: said == {"results": ["make"], "totalSize": 1},
    ),
    (
        *("GET", "/api/metadata/discovery/{dimension}/{name}/relations", "process_entity/make", {}),
        lambda said: (
            said["inVertices"] == [{"name": "raw", "type": "FEED_ENTITY", "label": "input"}]
            and {"name": "made", "type": "FEED_ENTITY", "label": "output"} in said["outVertices"]
            and {"name": "flights", "type": "PIPELINES", "label": "pipeline"} in said["outVertices"]
            and {"name": "primary", "type": "CLUSTER_ENTITY", "label": "runs-on"} in said["outVertices"]
        ),
    ),
    (
        *("GET", "/api/metadata/discovery/{dimension}/{name}/relations", "tags/owner=etl", {}),
        lambda said: said["inVertices"] == [{"name": "raw", "type": "FEED_ENTITY", "label": "classified-as"}],
    ),
    (
        *("GET", "/api/metadata/lineage/entities", "", {"params": {"pipeline": "flights"}}),
        lambda said: said == {"vertices": ["make"], "edges": []},
    ),
]


def test_each_path_answers_as_documented_in_json_and_in_xml(root: Client) -> None:
    done = set()
    for method, path, name, how, fits in ROWS:
        answer = ask(root, (method, path), name, **how)
        assert answer.status_code == 200, (path, answer.text)
        assert fits(answer.json()), (path, answer.text)
        done.add((method, path))
        if method == "GET":
            again = ask(root, (method, path), name, **{**how, "headers": {"Accept": "text/xml"}})
            assert again.headers["Content-Type"].startswith("text/xml")
            parsed = ElementTree.fromstring(again.content)
            assert (
                parsed.tag in ("result", "entities", "feeds", "properties", "results", "graph", "relations")
                or "Result" in parsed.tag
            )
            kept = {key for key, value in answer.json().items() if value not in ([], None)}
            assert {one.tag for one in parsed} == kept
    definition = ask(root, ("GET", "/api/entities/definition/{kind}/{name}"), MAKE)
    assert "kind: process" in definition.text
    assert {*PATHS} - done == {("GET", "/api/entities/definition/{kind}/{name}")}


@pytest.mark.parametrize("dimension", ["user", "colo", "tags", "pipelines", "groups", "cluster_entity"])
def test_what_can_be_discovered(root: Client, dimension: str) -> None:
    found = root.ask("GET", f"/api/metadata/discovery/{dimension}/list").json()
    known = {"colo": ["east"], "pipelines": ["flights"], "cluster_entity": ["primary"]}
    assert found["results"] == known.get(dimension, found["results"])
    assert found["totalSize"] == len(found["results"])


@pytest.mark.parametrize(
    ("method", "path", "how", "status", "text"),
    [
        ("GET", "/api/entities/status/process/none", {}, 404, "'none'"),
        ("GET", "/api/entities/status/planet/none", {}, 400, "Invalid entity type"),
        ("POST", "/api/entities/submit/feed", {"data": "<feed"}, 400, "definition:1"),
        ("POST", "/api/entities/submit/process", {"data": FEED.format(name="x", limit="hours(1)")}, 400, "has a feed"),
        ("GET", "/api/instance/status/process/make", {"params": {"filterBy": "COLOR:x"}}, 400, "COLOR"),
        ("GET", "/api/instance/status/process/make", {"params": {"numResults": "x"}}, 400, "is a number"),
        ("GET", "/api/entities/list", {"params": {"doAs": "joe"}}, 403, "may not act for 'joe'"),
        ("GET", "/api/extension/enumerate", {}, 404, "none of the paths"),
        (
            "POST",
            "/api/entities/submit/feed",
            {"data": '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'},
            400,
            "",
        ),
    ],
)
def test_refusals_are_answers_of_falcons(
    root: Client, method: str, path: str, how: dict[str, Any], status: int, text: str
) -> None:
    answer = root.ask(method, path, **how)
    assert answer.status_code == status, answer.text
    said = answer.json()
    assert said["status"] == "FAILED"
    assert text in said["message"]
    assert "root:" not in answer.text


def test_roles_hold_here_too(root: Client) -> None:
    viewer = root.called("eve", Role.VIEWER)
    for method, path, name, how, _ in ROWS:
        sent = xml(name="Third") if "submit" in path or "validate" in path else how
        if method != "GET":
            assert ask(viewer, (method, path), name, **sent).status_code == 403, path
    assert Client(root.url, None).ask("GET", "/api/admin/version").status_code == 401


def test_the_reference_has_each_path() -> None:
    page = (CHECKOUT / "docs" / "reference" / "rest.md").read_text()
    assert [path for path in PATHS if f"`{path[0]} {path[1]}" not in page] == []
