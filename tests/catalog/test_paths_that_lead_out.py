"""Paths that are none, or lead out of where they belong: said when definitions are checked, not when they are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.definition_files import FEEDS, changed, load, problems

PATH = "/delays/${YEAR}/${MONTH}/${DAY}/${HOUR}"
COLO = "colo: east"
NAME = "name: delays\n"
NO_FLAG = "is not the name of a file"
CONTROL = "a path must not contain control characters"
INSIDE = "must not be inside of each other"
CASES = {
    "flag_dots": ("feeds.yaml", NAME, f'{NAME}availability_flag: ".."\n', f"19: availability_flag: '..' {NO_FLAG}"),
    "flag_dot": ("feeds.yaml", NAME, f"{NAME}availability_flag: .\n", f"19: availability_flag: '.' {NO_FLAG}"),
    "flag_path": (
        "feeds.yaml",
        NAME,
        f"{NAME}availability_flag: ../_OK\n",
        "19: availability_flag: '../_OK' is not legal: write the name of a file, without slashes and spaces",
    ),
    "flag_nul": (
        "feeds.yaml",
        NAME,
        f'{NAME}availability_flag: "a\\0b"\n',
        rf"19: availability_flag: 'a\x00b' {NO_FLAG}",
    ),
    "path_nul": (
        "feeds.yaml",
        f"data: {PATH}",
        f'data: "{PATH}/\\0"',
        rf"21: locations.data: '{PATH}/\x00': {CONTROL}",
    ),
    "path_line_break": (
        "feeds.yaml",
        f"data: {PATH}",
        f'data: "/a\\nb{PATH}"',
        rf"21: locations.data: '/a\nb{PATH}': {CONTROL}",
    ),
    "staging_upwards": (
        "clusters.yaml",
        COLO,
        "locations: {staging: /../x}",
        "3: locations.staging: '/../x': a path must not contain '..'",
    ),
    "staging_is_the_root": (
        "clusters.yaml",
        COLO,
        "locations: {staging: /./}",
        "3: locations.staging: '/./' is the root itself: name a folder below it",
    ),
    "working_is_staging": (
        "clusters.yaml",
        COLO,
        "locations: {staging: /x, working: x/}",
        f"3: locations: staging '/x' and working 'x/' {INSIDE}",
    ),
    "working_in_staging": (
        "clusters.yaml",
        COLO,
        "locations: {staging: /.falcon}",
        f"3: locations: staging '/.falcon' and working '/.falcon/working' {INSIDE}",
    ),
    "staging_in_working": (
        "clusters.yaml",
        COLO,
        "locations: {staging: /x/y, working: /x}",
        f"3: locations: staging '/x/y' and working '/x' {INSIDE}",
    ),
    "endpoint_upwards": (
        "clusters.yaml",
        "endpoint: data/backup",
        "endpoint: ../backup",
        "9: interfaces.write.endpoint: '../backup': a path must not contain '..'",
    ),
    "partition_upwards": (
        "processes.yaml",
        "feed: raw,",
        'feed: raw, partition: "..",',
        "8: inputs[0].partition: '..': a path must not contain '..'",
    ),
}


@pytest.mark.parametrize(("file", "old", "new", "expected"), CASES.values(), ids=CASES)
def test_what_is_no_path(tmp_path: Path, file: str, old: str, new: str, expected: str) -> None:
    assert problems(tmp_path, changed(file, old, new)) == [f"{file}:{expected}"]


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("../..", "a variable puts '..' into the path on cluster 'primary'"),
        ('"a\\nb"', "a variable puts control characters into the path on cluster 'primary'"),
    ],
    ids=["upwards", "line_break"],
)
def test_a_property_that_leads_out(tmp_path: Path, value: str, rule: str) -> None:
    files = changed("clusters.yaml", COLO, f"properties: {{x: {value}}}")
    files["feeds.yaml"] = FEEDS.replace("/delays/$", "/delays/${x}/$")
    path = "/delays/${x}/${YEAR}/${MONTH}/${DAY}/${HOUR}"
    assert problems(tmp_path, files) == [f"feeds.yaml:21: locations.data: {path!r}: {rule}"]


TARGET = "type: target\n    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}"
MEETINGS = {
    "before": ("2012-01-01T00:00Z", "2013-01-01T00:00Z", "it is valid from 2013-01-01T00:00Z to 2014-01-01T00:00Z"),
    "after": ("2014-01-01T00:00Z", "2015-01-01T00:00Z", "it is valid from 2013-01-01T00:00Z to 2014-01-01T00:00Z"),
    "between_the_steps": ("2013-01-01T00:07Z", "2014-01-01T00:00Z", "its steps count from 2013-01-01T00:00Z"),
}


@pytest.mark.parametrize(("start", "end", "why"), MEETINGS.values(), ids=MEETINGS)
def test_replication_of_nothing(tmp_path: Path, start: str, end: str, why: str) -> None:
    files = changed("feeds.yaml", TARGET, f"type: target\n    validity: {{start: {start}, end: {end}}}")
    message = f"no instance of this target is one of source 'primary': {why}, so nothing is copied"
    assert problems(tmp_path, files) == [f"feeds.yaml:15: clusters[1].validity: {message}"]


def test_one_source_of_two_that_ended_before(tmp_path: Path) -> None:
    files = changed("feeds.yaml", "type: source", "type: source\n    partition: east")
    span = "validity: {start: 2012-01-01T00:00Z, end: 2013-01-01T00:00Z}"
    old = f"  - name: old\n    type: source\n    partition: west\n    {span}\n"
    files["feeds.yaml"] = files["feeds.yaml"].replace("  - name: backup", f"{old}  - name: backup")
    files["old.yaml"] = files["clusters.yaml"].partition("---\n")[2].replace("backup", "old")
    (warning,) = load(tmp_path, files).warnings
    assert str(warning).replace(f"{tmp_path}/", "") == (
        "feeds.yaml:20: warning: clusters[2].validity: no instance of this target is one of source 'old': it is valid "
        "from 2012-01-01T00:00Z to 2013-01-01T00:00Z, so nothing is copied"
    )
