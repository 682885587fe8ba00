"""What feeds declare of compaction: what is refused, where, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.catalog.store import load_entities
from tests.catalog.definition_files import FILES, problems, write

DELAYS = "name: delays\n"


def with_compaction(compact: str, more: str = "") -> dict[str, str]:
    feeds = FILES["feeds.yaml"].replace(DELAYS, f"{DELAYS}{more}compact: {compact}\n")
    return {**FILES, "feeds.yaml": feeds}


@pytest.mark.parametrize(
    ("compact", "more"),
    [
        ("{}", ""),
        (
            "{sort: [user_id, at], target_file_size: 1GB, when: complete, late_files: 3, replaces: true, parallel: 4}",
            "",
        ),
        ("{sort: [id]}", "format: orc\n"),
        ("{sort: [n]}", 'format: csv\nschema: "n decimal(10,2), address struct<a: int>"\noptions: {header: "true"}\n'),
        ("{sort: [value]}", "format: text\n"),
    ],
)
def test_right_ones_have_no_problem(tmp_path: Path, compact: str, more: str) -> None:
    write(tmp_path, with_compaction(compact, more))
    store = load_entities(tmp_path)
    assert [one.name for one in store.compactions_of("delays")] == ["delays compaction"] * len(store.compactions)
    assert store.compactions


@pytest.mark.parametrize(
    ("compact", "more", "said"),
    [
        ("{target_file_size: 256}", "", '256 is not a text: write "256" in quotes'),
        ("{target_file_size: 256MiB}", "", "'256MiB' is not legal: write a number with KB, MB or GB, like 256MB"),
        ("{late_files: -1}", "", "-1 is not legal: 0 or more"),
        (
            "{}",
            "format: avro\n",
            "files of the format avro cannot be compacted; those can be: parquet, orc, csv, json, text",
        ),
        (
            "{sort: [id]}",
            "format: json\n",
            "the schema of the feed has no column 'id': json is sorted by the types that `schema` declares",
        ),
        ("{sort: [a]}", 'format: json\nschema: "a array<int>"\n', "column 'a' is array, by which json is not sorted"),
        ("{sort: [x]}", "format: text\n", "the only column of text is value, and not x"),
        (
            "{}",
            'format: json\noptions: {multiLine: "true"}\n',
            "files with the option multiLine (rows of several lines) cannot be compacted",
        ),
    ],
)
def test_wrong_ones_are_refused_with_their_line(tmp_path: Path, compact: str, more: str, said: str) -> None:
    write(tmp_path, with_compaction(compact, more))
    (found,) = problems(tmp_path, with_compaction(compact, more))
    assert said in found
    assert "feeds.yaml:" in found


@pytest.mark.parametrize(
    ("compact", "more", "said"),
    [
        ("{}", "", "declare `versions`"),
        ("{replaces: true}", "versions: {keep: 1}\navailability_flag: DONE\n", "remove replaces"),
    ],
)
def test_an_object_store_has_to_keep_a_version(tmp_path: Path, compact: str, more: str, said: str) -> None:
    files = with_compaction(compact, more)
    files["clusters.yaml"] = files["clusters.yaml"].replace("endpoint: data/primary", 'endpoint: "s3://bucket/data"')
    why = "an object store cannot replace files in one step, so it has to keep a version"
    found = [one for one in problems(tmp_path, files) if "compact: on cluster" in one]
    assert [one.partition(": ")[2] for one in found] == [f"compact: on cluster 'primary', {why}: {said}"]


def test_a_snapshot_feed_is_not_compacted(tmp_path: Path) -> None:
    files = with_compaction("{}", "snapshot: true\n")
    files["feeds.yaml"] = files["feeds.yaml"].replace("/delays/${YEAR}/${MONTH}/${DAY}/${HOUR}", "/delays")
    said = "compact: a snapshot feed is replaced as a whole by whoever writes it: it is not compacted"
    assert said in "\n".join(problems(tmp_path, files))


@pytest.mark.parametrize("kind", ["feed", "process"])
def test_names_that_a_compaction_needs_in_dagster_are_taken(tmp_path: Path, kind: str) -> None:
    files = with_compaction("{}")
    name = "delays__compaction"
    if kind == "feed":
        files["feeds.yaml"] += (
            files["feeds.yaml"]
            .rpartition("---\n")[2]
            .join(["---\n", ""])
            .replace("name: delays\ncompact: {}\n", f"name: {name}\n")
            .replace("/delays/", "/others/")
        )
    else:
        files["processes.yaml"] = files["processes.yaml"].replace("name: hourly\n", f"name: {name}\n")
    assert any("the compaction of feed 'delays'" in one and name in one for one in problems(tmp_path, files))
