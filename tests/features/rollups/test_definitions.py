"""Declared roll-ups: what is refused, where, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.definition_files import FILES, load, problems

ROLLUP = """\
---
kind: feed
name: daily
frequency: days(1)
rollup: {of: [delays]}
clusters:
  - name: primary
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
"""
LINE = FILES["feeds.yaml"].count("\n") + 5
"""Of the key ``rollup``."""
AT = f"feeds.yaml:{LINE}"


def declared(old: str = "", new: str = "", more: str = "") -> dict[str, str]:
    return {**FILES, "feeds.yaml": FILES["feeds.yaml"] + ROLLUP.replace(old, new) + more}


def test_a_right_one_reads_as_its_members_do(tmp_path: Path) -> None:
    found = load(tmp_path, declared(), strict=True).feeds["daily"]
    assert found.rollup
    assert [one.name for one in found.rollup.feeds] == ["delays"]


WRONG = {
    "unknown": (
        "[delays]",
        "[delay]",
        f"{AT}: rollup.of[0]: unknown feed 'delay' (did you mean 'delays'?)",
    ),
    "twice": ("[delays]", "[delays, delays]", f"{AT}: rollup: names a feed twice"),
    "itself": (
        "[delays]",
        "[daily]",
        f"{AT}: rollup.of: a roll-up cannot be made of itself: daily -> daily",
    ),
    "all_optional": (
        "{of: [delays]}",
        "{of: [delays], optional: [delays]}",
        f"{AT}: rollup: one member at least must not be optional: an instance would be complete without any data",
    ),
    "optional_unknown": (
        "{of: [delays]}",
        "{of: [delays], optional: [other]}",
        f"{AT}: rollup: optional names other, which is not among of",
    ),
    "coarser": (
        "frequency: days(1)",
        "frequency: minutes(5)",
        f"{AT}: rollup.of[0]: feed 'delays' has a longer frequency, hours(1), than minutes(5)",
    ),
    "location": (
        "rollup: {of: [delays]}",
        'rollup: {of: [delays]}\nlocations: {data: "/d/${YEAR}-${MONTH}-${DAY}"}',
        f"feeds.yaml:{LINE + 1}: locations: a roll-up has no data of its own, its members have: remove it",
    ),
    "retention": (
        "2014-01-01T00:00Z}",
        "2014-01-01T00:00Z}\n    retention: {limit: days(9)}",
        f"feeds.yaml:{LINE + 4}: clusters[0].retention: a roll-up has no data of its own, its members have: remove it",
    ),
    "cluster": (
        "name: primary",
        "name: backup",
        f"{AT}: rollup.of[0]: feed 'delays' is not on cluster 'backup': it is needed where the roll-up is",
    ),
    "read_together": (
        "[delays]",
        "[delays, raw]",
        f"{AT}: rollup.of: feeds 'delays' and 'raw' are read together, and differ in partitions",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG.values(), ids=list(WRONG))
def test_wrong_ones_are_named_with_their_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert problems(tmp_path, declared(old, new)) == [message]


def test_no_process_writes_one(tmp_path: Path) -> None:
    files = declared()
    files["processes.yaml"] = files["processes.yaml"].replace("feed: delays, instance", "feed: daily, instance")
    (found,) = problems(tmp_path, files)
    assert found == (
        "processes.yaml:10: outputs[0].feed: feed 'daily' is a roll-up, which no process writes: write its members"
    )


def test_a_circle_of_several_is_drawn(tmp_path: Path) -> None:
    weekly = ROLLUP.replace("name: daily", "name: weekly").replace("days(1)", "days(7)").replace("[delays]", "[daily]")
    found = problems(tmp_path, declared("[delays]", "[delays, weekly]", weekly))
    assert any("a roll-up cannot be made of itself: daily -> weekly -> daily" in one for one in found)
