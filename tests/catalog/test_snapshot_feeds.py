"""What may be said of a snapshot feed, and of processes that use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.definition_files import CLUSTERS, load, problems

FEED = """\
kind: feed
name: carriers
snapshot: true
frequency: days(1)
locations: {data: /carriers}
clusters:
  - {name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
"""
PROCESS = """\
kind: process
name: daily
frequency: days(1)
clusters:
  - {name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
inputs:
  - {name: rows, feed: carriers, start: "now(0,0)", end: "now(0,0)"}
workflow: {engine: spark-sql, path: daily.sql}
"""
FILES = {"clusters.yaml": CLUSTERS, "feed.yaml": FEED, "process.yaml": PROCESS, "daily.sql": "SELECT 1"}


def with_text(file: str, old: str, new: str) -> dict[str, str]:
    assert FILES[file].count(old) == 1
    return {**FILES, file: FILES[file].replace(old, new)}


def test_a_feed_without_times_in_its_path_says_that_it_is_one(tmp_path: Path) -> None:
    assert load(tmp_path / "right", FILES, strict=True).feed("carriers").snapshot
    assert problems(tmp_path / "wrong", with_text("feed.yaml", "snapshot: true\n", "")) == [
        "feed.yaml:4: locations.data: '/carriers' is coarser than the frequency days(1): instances would share a path "
        "without ${YEAR}, ${MONTH}, ${DAY}; where it is replaced in place, declare snapshot: true"
    ]


def test_times_in_its_path_are_refused(tmp_path: Path) -> None:
    timed = with_text("feed.yaml", "/carriers}", '"/carriers/${YEAR}"}')
    assert problems(tmp_path, timed) == [
        "feed.yaml:5: locations.data: '/carriers/${YEAR}': the data of a snapshot feed has no time in its path: take "
        "that out, or snapshot: true"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("retention: {limit: days(90)}", "retention: a snapshot feed has its present data only, which stays"),
        ("type: target", "type: snapshot feeds are not replicated yet"),
        ('table: {uri: "catalog:db:t#ds=1"}', "table: a snapshot feed has locations"),
    ],
)
def test_what_belongs_to_single_instances_is_refused(tmp_path: Path, text: str, said: str) -> None:
    files = with_text("feed.yaml", "{name: primary,", f"{{name: primary, {text},")
    assert any(f"feed.yaml:7: clusters[0].{said}" in problem for problem in problems(tmp_path, files))


def test_nothing_keeps_earlier_versions(tmp_path: Path) -> None:
    files = with_text("feed.yaml", "snapshot: true\n", "snapshot: true\nversions: {keep: 3}\n")
    (problem,) = problems(tmp_path, files, strict=True)[:1]
    assert problem == "feed.yaml:4: versions: a snapshot feed is replaced by others, who keep no earlier versions"


@pytest.mark.parametrize("window", ['"latest(0)", end: "latest(0)"', '"today(0,0)", end: "today(0,0)"'])
def test_the_present_data_can_be_read(tmp_path: Path, window: str) -> None:
    load(tmp_path, with_text("process.yaml", '"now(0,0)", end: "now(0,0)"', window), strict=True)


@pytest.mark.parametrize(
    "window",
    [
        '"now(-24,0)", end: "now(0,0)"',
        '"latest(-1)", end: "latest(0)"',
        '"latest(-1)", end: "latest(-1)"',
        '"future(0,3)", end: "future(0,3)"',
        '"today(0,0)", end: "latest(0)"',
    ],
)
def test_what_was_replaced_cannot(tmp_path: Path, window: str) -> None:
    assert problems(tmp_path, with_text("process.yaml", '"now(0,0)", end: "now(0,0)"', window)) == [
        "process.yaml:7: inputs[0].start: feed 'carriers' is a snapshot, of which only the present data can be read: "
        "start and end must be the same time, or both latest(0)"
    ]


def test_processes_do_not_write_it(tmp_path: Path) -> None:
    output = 'outputs: [{name: out, feed: carriers, instance: "now(0,0)"}]\nworkflow:'
    files = with_text("process.yaml", "workflow:", output)
    files["process.yaml"] = files["process.yaml"].replace("inputs:\n  - ", "inputs: []\n#")
    assert problems(tmp_path, files) == [
        "process.yaml:8: outputs[0].feed: feed 'carriers' is a snapshot, and processes do not write such yet"
    ]


@pytest.mark.parametrize("place", ["/carriers", "/carriers/2013"])
def test_nothing_else_lies_in_its_path(tmp_path: Path, place: str) -> None:
    other = FEED.replace("name: carriers", "name: other").replace("/carriers", place)
    (problem,) = problems(tmp_path, {**FILES, "feed.yaml": f"{FEED}---\n{other}"})
    assert "carriers" in problem
    assert problem.startswith("feed.yaml:13: locations.data: ")


@pytest.mark.parametrize("area", ["/carriers", "/carriers/staging"])
def test_nor_do_the_areas_of_the_cluster(tmp_path: Path, area: str) -> None:
    files = with_text("clusters.yaml", "name: primary\n", f"name: primary\nlocations: {{staging: {area}}}\n")
    (problem,) = problems(tmp_path, files)
    assert "where feed 'carriers' lies, must not be inside of each other" in problem
