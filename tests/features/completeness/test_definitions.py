"""Declared completeness: what is refused, where, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.definition_files import FILES, load, problems

RAW = "late_arrival: {cut_off: hours(6)}\n"
WRITTEN = "name: delays\n"
RIGHT = (
    "{at_least: 99.995, expected: reported}",
    "{at_least: 100, expected: {feed: delays}, at_most_wait: hours(2)}",
    '{at_least: 1, expected: {sql: {url: {env: COUNTS}, query: "SELECT 1"}}}',
    '{at_least: 50, expected: {kafka: {brokers: "a:9092,b:9092", topic: clicks}}}',
)


def declared(completeness: str, below: str = RAW) -> dict[str, str]:
    return {**FILES, "feeds.yaml": FILES["feeds.yaml"].replace(below, f"{below}completeness: {completeness}\n")}


@pytest.mark.parametrize("completeness", RIGHT)
def test_right_ones_have_no_problem(tmp_path: Path, completeness: str) -> None:
    assert load(tmp_path, declared(completeness), strict=True).feeds["raw"].completeness


WRONG = {
    "no_share": ("{expected: reported}", "completeness.at_least: required key is missing"),
    "no_source": ("{at_least: 5}", "completeness.expected: required key is missing"),
    "nothing": ("{at_least: 0, expected: reported}", "completeness.at_least: 0 is not legal: more than 0"),
    "too_much": ("{at_least: 100.01, expected: reported}", "completeness.at_least: 100.01 is not legal: 100 at most"),
    "truth": ("{at_least: true, expected: reported}", "completeness.at_least: must be a number"),
    "misspelt": ("{at_least: 5, expected: reportd}", "completeness.expected: "),
    "two_sources": (
        "{at_least: 5, expected: {feed: delays, kafka: {brokers: a, topic: b}}}",
        "completeness.expected: needs exactly one of feed, sql and kafka",
    ),
    "none": ("{at_least: 5, expected: {}}", "completeness.expected: needs exactly one of feed, sql and kafka"),
    "unknown_feed": ("{at_least: 5, expected: {feed: dlays}}", "completeness.expected.feed: there is no feed 'dlays'"),
    "itself": ("{at_least: 5, expected: {feed: raw}}", "a feed cannot have its own counts: name another feed"),
    "password": (
        "{at_least: 5, expected: {sql: {url: postgresql://u:secret@h/d, query: a}}}",
        "completeness.expected.sql.url: ",
    ),
}


@pytest.mark.parametrize(("completeness", "message"), WRONG.values(), ids=list(WRONG))
def test_wrong_ones_are_named_with_their_line(tmp_path: Path, completeness: str, message: str) -> None:
    (found,) = problems(tmp_path, declared(completeness))
    assert found.startswith("feeds.yaml:6: ")
    assert message in found
    assert "secret" not in found


def test_what_a_process_writes_is_not_counted(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, declared("{at_least: 5, expected: reported}", WRITTEN))
    assert found == (
        "feeds.yaml:19: completeness: process 'hourly' writes the feed on cluster 'primary', whole or not at all: only "
        "what lands from outside is counted"
    )


def test_a_snapshot_is_not_counted(tmp_path: Path) -> None:
    files = declared("{at_least: 5, expected: reported}")
    feeds = (
        files["feeds.yaml"]
        .replace("/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}", "/raw")
        .replace(RAW, f"{RAW}snapshot: true\n")
    )
    found = problems(tmp_path, {**files, "feeds.yaml": feeds.replace("    retention: {limit: days(90)}\n", "")})
    assert [one for one in found if "completeness" in one] == [
        "feeds.yaml:7: completeness: a snapshot feed has no instances of its own to count: remove it"
    ]


def test_a_format_whose_records_are_not_counted_is_a_warning(tmp_path: Path) -> None:
    files = declared("{at_least: 5, expected: reported}")
    files["feeds.yaml"] = files["feeds.yaml"].replace(RAW, f"format: avro\n{RAW}")
    (found,) = load(tmp_path, files).warnings
    assert found.message == "its files are not counted, so the records that came have to be reported"
