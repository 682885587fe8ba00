"""Names that differ in the definitions and not in Dagster are refused when they are loaded; all others work there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}"
Write = Callable[[dict[str, str]], Path]


def cluster(name: str) -> str:
    return f"""---
kind: cluster
name: {name}
interfaces: {{write: {{endpoint: "data/{name}"}}, execute: {{endpoint: "local[1]"}}}}
"""


def feed(name: str, *clusters: str) -> str:
    entries = [one if "," in one else f"name: {one}" for one in clusters]
    return f"""---
kind: feed
name: {name}
frequency: hours(1)
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{", ".join(f"{{{one}, {SPAN}}}" for one in entries)}]
"""


def process(name: str, *clusters: str, pipeline: str = "default") -> str:
    return f"""---
kind: process
name: {name}
pipelines: [{pipeline}]
frequency: hours(1)
clusters: [{", ".join(f"{{name: {one}, {SPAN}}}" for one in clusters)}]
outputs: [{{name: out, feed: of-{name}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: all.sql}}
""" + feed(f"of-{name}", *clusters)


EFFECTS = "".join(  # the process a is not where the feed a is
    f"""---
kind: process
name: {name}
frequency: hours(1)
clusters: [{{name: {cluster}, {SPAN}}}]
workflow: {{engine: spark-sql, path: all.sql}}
"""
    for name, cluster in (("a", "primary"), ("b", "backup"))
)
REPLICATED = ("name: primary, type: source", "name: backup, type: target")
CLUSTERS = cluster("primary") + cluster("backup")
REFUSED = {
    "clusters": (
        cluster("a-b") + cluster("a_b"),
        [
            "all.yaml:7: name: cluster 'a_b' needs the name 'a_b__collector' in Dagster, "
            "as cluster 'a-b' at all.yaml:3 does",
        ],
    ),
    "processes on one cluster, once": (
        CLUSTERS + process("a-b", "primary", "backup") + process("a_b", "primary", "backup"),
        [
            "all.yaml:25: name: process 'a_b' needs the name 'primary__a_b' in Dagster, "
            "as process 'a-b' at all.yaml:11 does"
        ],
    ),
    "the op of a process and the job of another": (
        CLUSTERS + process("a", "primary") + process("a_job", "primary"),
        [
            "all.yaml:25: name: process 'a_job' needs the name 'primary__a_job' in Dagster, "
            "as process 'a' at all.yaml:11 does"
        ],
    ),
    "feeds that are replicated to one cluster": (
        CLUSTERS + feed("a-b", *REPLICATED) + feed("a_b", *REPLICATED),
        [
            "all.yaml:17: name: the replication of feed 'a_b' needs the name 'backup__a_b__replication' in Dagster, "
            "as the replication of feed 'a-b' at all.yaml:11 does"
        ],
    ),
    "pipelines": (
        CLUSTERS + process("a", "primary", pipeline="a-b") + process("b", "primary", pipeline="a_b"),
        [
            "all.yaml:26: pipelines[0]: pipeline 'a_b' needs the name 'a_b__coordinator' in Dagster, "
            "as pipeline 'a-b' at all.yaml:12 does"
        ],
    ),
    "a process without outputs and a feed": (
        CLUSTERS + feed("a", "backup") + feed("b", "backup") + EFFECTS,
        [
            "all.yaml:29: name: process 'b', which has no outputs, needs the name 'backup/b' in Dagster, "
            "as feed 'b' at all.yaml:17 does"
        ],
    ),
    "a pipeline and a replication": (
        CLUSTERS + feed("raw", *REPLICATED) + process("a", "primary", pipeline="backup_replication"),
        [
            "all.yaml:18: pipelines[0]: pipeline 'backup_replication' needs the name "
            "'backup_replication__coordinator' in Dagster, as the replication to cluster 'backup' at all.yaml:14 does"
        ],
    ),
}


@pytest.mark.parametrize(("text", "expected"), REFUSED.values(), ids=REFUSED)
def test_names_that_meet_in_dagster_are_refused(write_entities: Write, text: str, expected: list[str]) -> None:
    root = write_entities({"all.yaml": text, "all.sql": "SELECT 1 AS n"})
    with pytest.raises(InvalidDefinitionsError) as refused:
        load_entities(root)
    said = [str(problem).replace(f"{root}/", "") for problem in refused.value.problems]
    assert said == [f"{one}: rename one of them" for one in expected]


def test_other_names_that_are_alike_work_in_dagster(settings: Settings, write_entities: Write) -> None:
    text = "".join(
        [
            CLUSTERS,
            feed("a-b", "primary"),
            feed("a_b", "primary", "backup"),
            feed("copied", *REPLICATED),
            process("x-y", "primary", pipeline="primary"),
            process("x_y", "backup", pipeline="backup"),
            process("collector", "primary"),
            process("coordinator", "primary"),
            process("default", "primary"),
        ]
    )
    store = load_entities(write_entities({"all.yaml": text, "all.sql": "SELECT 1 AS n"}))
    dg.Definitions.validate_loadable(definitions_of(store, settings))
