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
        "feed.yaml:5: locations.data: '/carriers/${YEAR}': the data path of a snapshot feed must not contain a time: "
        "remove the time, or remove snapshot: true"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "retention: {limit: days(90)}",
            "retention: a snapshot feed has only its present data, which is never evicted",
        ),
    ],
)
def test_what_belongs_to_single_instances_is_refused(tmp_path: Path, text: str, said: str) -> None:
    files = with_text("feed.yaml", "{name: primary,", f"{{name: primary, {text},")
    assert any(f"feed.yaml:7: clusters[0].{said}" in problem for problem in problems(tmp_path, files))


IN_ICEBERG = CLUSTERS.replace(
    'execute: {endpoint: "local[2]"}}',
    'execute: {endpoint: "local[2]"}, registry: {endpoint: "iceberg+postgresql://h/d#c"}}',
)


@pytest.mark.parametrize("uri", ["catalog:db:carriers", "catalog:db:carriers#region=*;carrier=*"])
def test_a_whole_table_may_be_one(tmp_path: Path, uri: str) -> None:
    files = with_text("feed.yaml", "locations: {data: /carriers}", f'table: {{uri: "{uri}"}}')
    load(tmp_path / "right", {**files, "clusters.yaml": IN_ICEBERG}, strict=True)
    hive = IN_ICEBERG.replace("iceberg+postgresql://h/d#c", "thrift://h:9083")
    assert problems(tmp_path / "hive", {**files, "clusters.yaml": hive}) == [
        "feed.yaml:7: clusters[0].name: feed 'carriers' is a table on cluster 'primary', and a Hive Metastore does not "
        "know when its data changed: declare its folder as locations.data instead"
    ]
    (problem,) = problems(
        tmp_path / "timed",
        {**files, "clusters.yaml": IN_ICEBERG, "feed.yaml": files["feed.yaml"].replace("snapshot: true\n", "")},
    )
    assert problem.endswith("where it is replaced in place, declare snapshot: true")


@pytest.mark.parametrize(
    ("uri", "more", "said"),
    [
        ("catalog:db:t#ds=1", "", "table.uri: 'catalog:db:t#ds=1': a snapshot feed is the whole table: write *"),
        ("catalog:db:t#ds=${YEAR}", "", "the data path of a snapshot feed must not contain a time: remove the time"),
        (
            "catalog:db:t",
            "type: source,",
            "clusters[0].type: feed 'carriers' is a table on cluster 'primary', and tables",
        ),
    ],
)
def test_what_a_table_is_not_as_a_snapshot(tmp_path: Path, uri: str, more: str, said: str) -> None:
    text = FEED.replace("locations: {data: /carriers}", f'table: {{uri: "{uri}"}}')
    text = text.replace("{name: primary,", f"{{name: primary, {more}")
    found = problems(tmp_path, {**FILES, "clusters.yaml": IN_ICEBERG, "feed.yaml": text})
    assert any(said in problem for problem in found), found


def test_no_process_writes_a_table_as_a_snapshot(tmp_path: Path) -> None:
    files = with_text("feed.yaml", "locations: {data: /carriers}", 'table: {uri: "catalog:db:t"}')
    written = PROCESS.replace("inputs:", "outputs:").replace('start: "now(0,0)", end:', "instance:")
    found = problems(tmp_path, {**files, "clusters.yaml": IN_ICEBERG, "process.yaml": written})
    assert any(
        "feed 'carriers' is a snapshot, which each instance replaces: only those in files are written yet" in problem
        for problem in found
    ), found


def test_it_is_copied_from_one_source(tmp_path: Path) -> None:
    entry = FEED.splitlines()[-1]
    copied = FEED + entry.replace("primary", "backup") + "\n"
    one = copied.replace("primary,", "primary, type: source,").replace("backup,", "backup, type: target,")
    load(tmp_path / "one", {**FILES, "feed.yaml": one})
    two = one.replace("type: target", "type: source")
    assert any(
        "feed.yaml:8: clusters[1].type: a snapshot feed is copied as a whole: it has one source" in problem
        for problem in problems(tmp_path / "two", {**FILES, "feed.yaml": two})
    )


def test_nothing_keeps_earlier_versions(tmp_path: Path) -> None:
    files = with_text("feed.yaml", "snapshot: true\n", "snapshot: true\nversions: {keep: 3}\n")
    (problem,) = problems(tmp_path, files, strict=True)[:1]
    assert problem == "feed.yaml:4: versions: earlier versions of a snapshot feed cannot be kept yet: remove versions"


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


NEWER = '"latest(0)", end: "latest(0)", newer_than: last_run'


def test_each_version_may_be_used_once(tmp_path: Path) -> None:
    load(tmp_path, with_text("process.yaml", '"now(0,0)", end: "now(0,0)"', NEWER), strict=True)


@pytest.mark.parametrize(
    ("window", "said"),
    [
        (
            '"now(0,0)", end: "now(0,0)", newer_than: last_run',
            "the newest version is used, whatever its time: start and end must both be latest(0)",
        ),
        (f"{NEWER}, optional: true", "an optional input is not waited for: remove optional or newer_than"),
    ],
)
def test_what_is_used_once_is_the_newest_and_required(tmp_path: Path, window: str, said: str) -> None:
    files = with_text("process.yaml", '"now(0,0)", end: "now(0,0)"', window)
    assert problems(tmp_path, files) == [f"process.yaml:7: inputs[0].newer_than: {said}"]


def test_what_is_used_once_is_not_late(tmp_path: Path) -> None:
    files = with_text("process.yaml", '"now(0,0)", end: "now(0,0)"', NEWER)
    files["process.yaml"] += "late_process: {policy: final, inputs: [{input: rows}]}\n"
    files["feed.yaml"] += "late_arrival: {cut_off: days(1)}\n"
    assert problems(tmp_path, files) == [
        "process.yaml:7: inputs[0].newer_than: each version is used once: remove input 'rows' from late_process, or "
        "remove newer_than"
    ]


def test_only_snapshots_have_versions_that_are_used_once(tmp_path: Path) -> None:
    files = with_text("process.yaml", '"now(0,0)", end: "now(0,0)"', NEWER)
    files["feed.yaml"] = FEED.replace("snapshot: true\n", "").replace(
        "/carriers}", '"/carriers/${YEAR}-${MONTH}-${DAY}"}'
    )
    assert problems(tmp_path, files) == [
        "process.yaml:7: inputs[0].newer_than: feed 'carriers' is not a snapshot: each of its instances is read at "
        "its own time"
    ]


OUTPUT = 'outputs: [{name: out, feed: codes, instance: "now(0,0)"}]'
WRITES = {
    **FILES,
    "feed.yaml": FEED + "---\n" + FEED.replace("carriers", "codes"),
    "process.yaml": PROCESS.replace(
        "workflow:", 'outputs: [{name: out, feed: codes, instance: "now(0,0)"}]\nworkflow:'
    ),
}


def test_processes_write_it(tmp_path: Path) -> None:
    load(tmp_path, WRITES, strict=True)


def test_nothing_else_is_written_with_it(tmp_path: Path) -> None:
    dated = (
        FEED.replace("snapshot: true\n", "").replace("carriers", "days").replace("/days", '"/${YEAR}${MONTH}${DAY}"')
    )
    other = OUTPUT.replace("]", ', {name: more, feed: days, instance: "now(0,0)"}]')
    files = {
        **WRITES,
        "days.yaml": dated,
        "process.yaml": WRITES["process.yaml"].replace(OUTPUT, other),
    }
    assert problems(tmp_path, files) == [
        "process.yaml:8: outputs[0].feed: feed 'codes' is a snapshot, which each instance replaces: the process writes "
        "'days' as well, and instances that a later one passed are skipped, which would leave gaps in it: let another "
        "process write that"
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "frequency: days(1)\n",
            "frequency: days(1)\norder: LIFO\n",
            "4: order: {}: the newest has to be the last: order must be FIFO or LAST_ONLY",
        ),
        ('now(0,0)"}]', 'now(24,0)"}]', "8: outputs[0].feed: {}: its instance must not lie after that of the process"),
        ("feed: codes", "feed: carriers", "8: outputs[0].feed: {}: the process cannot read it as well"),
        (
            "workflow:",
            "late_process: {policy: final, inputs: [{input: rows}]}\nworkflow:",
            "9: late_process: {}: an earlier one must not be written again: remove late_process",
        ),
    ],
    ids=["newest first", "the future", "its own", "late data"],
)
def test_the_newest_instance_is_what_lies_there(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = WRITES["process.yaml"]
    assert text.count(old) == 1
    found = problems(tmp_path, {**WRITES, "process.yaml": text.replace(old, new)})
    feed = "carriers" if "carriers" in new else "codes"
    what = f"feed '{feed}' is a snapshot, which each instance replaces"
    assert f"process.yaml:{said.format(what)}" in found


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
