"""Executors in definitions: what is wrong about them, and what ``interfaces.execute`` is then."""

from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.model.cluster import Cluster
from falcon_assets.planning.capabilities import possible_capabilities
from tests.builders import make_cluster
from tests.catalog.definition_files import changed, load, problems

OLD = 'write: {endpoint: data/primary}, execute: {endpoint: "local[2]"}}'
EXECUTE = "interfaces.execute"
CASES = {
    "neither": ("", [f"clusters.yaml:4: {EXECUTE}: required key is missing"]),
    "an_empty_list": ("executors: []", [f"clusters.yaml:4: {EXECUTE}: required key is missing"]),
    "a_wrong_endpoint": (
        "executors: [{name: east, endpoint: mesos}]",
        [
            "clusters.yaml:5: executors[0].endpoint: 'mesos' is not an execute endpoint: write local[N], "
            "spark://host:port, yarn, k8s://... or sc://host:port"
        ],
    ),
    "no_endpoint": (
        "executors: [{name: east}]",
        ["clusters.yaml:5: executors[0].endpoint: required key is missing"],
    ),
    "one_name_twice": (
        "executors: [{name: east, endpoint: local}, {name: east, endpoint: 'local[2]'}]",
        ["clusters.yaml:5: executors[1].name: another executor is called 'east'"],
    ),
    "half_a_pair": (
        "executors: [{name: east, endpoint: local, capabilities: [[file]]}]",
        ["clusters.yaml:5: executors[0].capabilities[0][1]: required key is missing"],
    ),
    "no_pairs": (
        "executors: [{name: east, endpoint: local, capabilities: []}]",
        ["clusters.yaml:5: executors[0].capabilities: must not be empty"],
    ),
    "no_limit_at_all": (
        "executors: [{name: east, endpoint: local, quota: {jobs: 0}}]",
        ["clusters.yaml:5: executors[0].quota.jobs: 0 is not legal: 1 or more"],
    ),
    "a_ui_with_a_password": (
        "executors: [{name: east, endpoint: local, ui: 'http://a:b@h:8080'}]",
        ["clusters.yaml:5: executors[0].ui: 'http://a:*****@h:8080' is not legal: write http://host:port"],
    ),
}


def declaring(more: str) -> dict[str, str]:
    return changed("clusters.yaml", OLD, f"write: {{endpoint: data/primary}}}}\n{more}")


@pytest.mark.parametrize(("more", "expected"), CASES.values(), ids=CASES)
def test_what_is_wrong(tmp_path: Path, more: str, expected: list[str]) -> None:
    assert problems(tmp_path, declaring(more)) == expected


WARNINGS = {
    "cannot": (
        "{name: east, endpoint: local, capabilities: [[file, hive]]}",
        "no executor of cluster 'primary' can move data from file to file: its instances wait for ever",
    ),
    "of_a_queue": (
        "{name: east, endpoint: local, queue: night}",
        "no executor of cluster 'primary' takes work without a queue: its instances wait for ever",
    ),
    "can": ("{name: east, endpoint: local, capabilities: [[file, hive]]}, {name: west, endpoint: local}", None),
}


@pytest.mark.parametrize(("executors", "warning"), WARNINGS.values(), ids=WARNINGS)
def test_what_waits_for_ever(tmp_path: Path, executors: str, warning: str | None) -> None:
    store = load(tmp_path, declaring(f"executors: [{executors}]"))
    found = [one.message for one in store.warnings]
    assert found == ([warning] if warning else [])


def test_the_first_is_what_executes_where_nothing_else_says_so(tmp_path: Path) -> None:
    store = load(tmp_path, declaring("executors: [{name: east, endpoint: 'local[3]'}]"))
    assert store.clusters["primary"].interfaces.execute.endpoint == "local[3]"


def test_without_executors_there_is_one_of_the_name_default() -> None:
    (one,) = make_cluster().all_executors
    assert (one.name, one.endpoint) == ("default", "local[2]")
    assert make_cluster().on("default") == make_cluster()


def cluster(**more: object) -> Cluster:
    one = {"name": "east", "endpoint": "spark://h:7077", "quota": {"cores": 4}}
    other = {"name": "west", "endpoint": "sc://h:15002", "quota": {"cores": 4}}
    return make_cluster(interfaces={"write": {"endpoint": "data"}}, executors=[one, other], **more)


def test_a_cluster_on_an_executor_executes_there() -> None:
    whole = cluster()
    assert whole.interfaces.execute.endpoint == "spark://h:7077"
    assert [whole.on(name).interfaces.execute.endpoint for name in ("east", "west", "north")] == [
        "spark://h:7077",
        "sc://h:15002",
        "spark://h:7077",
    ]


def test_sessions_on_standalone_clusters_get_no_more_cores_than_the_quota_has() -> None:
    assert [cluster().on(name).properties for name in ("east", "west")] == [{"spark.cores.max": "4"}, {}]
    asked = {"spark.cores.max": "1"}
    assert cluster(properties=asked).on("east").properties == asked


def test_data_goes_from_one_datasource_to_another_through_a_cluster() -> None:
    assert possible_capabilities(["file", "mysql"], ["file", "http"]) == (
        ("file", "file"),
        ("file", "http"),
        ("mysql", "file"),
    )
