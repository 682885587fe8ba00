"""What the author wrote stays, but for what the new definition says otherwise."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.catalog.yaml_files.merging import canonical, has_comments, merged, said
from tests.catalog.mutations import ALL
from tests.properties import examples

OLD = """\
# What lands.
kind: feed
name: raw
tags:   {owner: a,   class: public}      # who
frequency: hours(1)     # each hour

# When it may still change
late_arrival: {cut_off: hours(6)}
# Where it lies
locations:
  # with the time
  data: "/raw/${YEAR}"
  stats: '/stats/${YEAR}'   # counts
clusters:
  # the first one
  - name: primary
    type: source             # from here
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
  # the other one
  - name: backup
    type: target
schema: >-
  a int,
  b int
# the end
"""

CASES: dict[str, tuple[list[tuple[str, str]], list[tuple[str, str]]]] = {
    "nothing": ([], []),
    "a value": ([("hours(1)     # each hour", "hours(2)")], [("hours(1)     #", "hours(2)     #")]),
    "a quoted value": ([("'/stats/${YEAR}'", "/stats")], [("'/stats/${YEAR}'   #", "/stats   #")]),
    "a value in braces": ([("owner: a, ", "owner: b, ")], [("owner: a, ", "owner: b, ")]),
    "a key more": (
        [("frequency:", "timezone: UTC\nfrequency:")],
        [("frequency:", "timezone: UTC\nfrequency:")],
    ),
    "a key less, and its comment": (
        [("# When it may still change\nlate_arrival: {cut_off: hours(6)}\n", "")],
        [("# When it may still change\nlate_arrival: {cut_off: hours(6)}\n", "")],
    ),
    "a key less further in": (
        [("  stats: '/stats/${YEAR}'   # counts\n", "")],
        [("  stats: '/stats/${YEAR}'   # counts\n", "")],
    ),
    "an item less": (
        [("  # the other one\n  - name: backup\n    type: target\n", "")],
        [("  # the other one\n  - name: backup\n    type: target\n", "")],
    ),
    "an item more": (
        [("    type: target\n", "    type: target\n  - name: third\n    type: target\n")],
        [("    type: target\n", "    type: target\n  - name: third\n    type: target\n")],
    ),
    "a key of an item": (
        [("    type: source             # from here\n", "    type: source\n    delay: hours(1)\n")],
        [("             # from here\n", "             # from here\n    delay: hours(1)\n")],
    ),
    "braces to lines": (
        [("tags:   {owner: a,   class: public}      # who", "tags:\n  owner: a\n  class: secret")],
        [("class: public", "class: secret")],
    ),
    "another tag": (
        [("tags:   {owner: a,   class: public}      # who", "tags:\n    owner: a")],
        [("tags:   {owner: a,   class: public}", "tags:\n    owner: a")],
    ),
    "a folded text": ([("  b int\n", "  c int\n")], [("  b int\n", "  c int\n")]),
}


def uncommented(text: str) -> str:
    return (
        "\n".join(line.split("# ")[0].rstrip() for line in text.splitlines() if not line.lstrip().startswith("#"))
        + "\n"
    )


def replaced(text: str, changes: list[tuple[str, str]]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(("asked", "expected"), CASES.values(), ids=CASES)
def test_only_what_is_asked_for_changes(asked: list[tuple[str, str]], expected: list[tuple[str, str]]) -> None:
    assert merged(OLD, uncommented(replaced(OLD, asked))) == replaced(OLD, expected)


def test_another_order_is_no_change() -> None:
    kind, name, *rest = uncommented(OLD).splitlines(keepends=True)
    assert merged(OLD, "".join([*rest, name, kind])) == OLD


def test_from_json() -> None:
    data = yaml.safe_load(OLD.replace("hours(1)", "hours(3)").replace("type: target", "type: source"))
    data["properties"] = {"a": "b"}
    after = replaced(OLD, [("hours(1)", "hours(3)"), ("type: target", "type: source")])
    end = "  a int,\n  b int\n"
    assert merged(OLD, canonical(data)) == after.replace(end, end + '"properties": {"a": "b"}\n') or merged(
        OLD, canonical(data)
    ).count("#") == OLD.count("#")


@pytest.mark.parametrize(
    "new",
    [
        "kind: feed\nname: &a raw\nother: *a\n",
        "[1, 2]\n",
        "a: b\n",
        "kind: feed\nname: !!str raw\n",
        '{"kind": "feed"}\n',
    ],
)
def test_the_new_text_where_there_is_nothing_to_keep(new: str) -> None:
    assert said(merged(OLD, new)) == said(new)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: b # c\n", True),
        ("# a\nb: c\n", True),
        ('a: "b # c"\n', False),
        ("a: b#c\n", False),
        ("a: |\n  # b\n", False),
    ],
)
def test_comments_are_found(text: str, expected: bool) -> None:
    assert has_comments(text) is expected


_LEAVES = st.one_of(st.integers(), st.booleans(), st.none(), st.text("ab:#- '\"{}[]\n", max_size=6))
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["name", "a", "b", "c c"]), inner, max_size=3)
    ),
    max_leaves=8,
)
_DOCUMENTS = st.dictionaries(st.sampled_from("abcdef"), _VALUES, min_size=1)


@examples(400)
@given(_DOCUMENTS, _DOCUMENTS, st.sampled_from([None, True, False]), st.sampled_from([None, True, False]))
def test_it_says_what_the_new_one_says(one: Any, other: Any, flow: bool | None, other_flow: bool | None) -> None:
    old = yaml.safe_dump(one, default_flow_style=flow, sort_keys=False)
    new = yaml.safe_dump({**one, **other}, default_flow_style=other_flow)
    assert said(merged(old, new)) == said(new)
    assert merged(old, old) == old


@pytest.mark.parametrize(("one", "other"), list(combinations(ALL.split("---\n"), 2)))
def test_any_definition_may_follow_any_other(one: str, other: str) -> None:
    assert said(merged(one, other)) == said(other)
