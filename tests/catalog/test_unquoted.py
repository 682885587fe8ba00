"""An expression that YAML ends at its comma is one problem, which says what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.catalog.yaml_files.documents import Files, read_file


def problems(text: str) -> list[str]:
    files = Files()
    read_file(Path("a.yaml"), text.encode(), files)
    return [f"{one.position.line}:{one.position.column} {one.key_path}: {one.message}" for one in files.problems]


def test_the_whole_expression_is_said() -> None:
    said = problems("inputs: [{name: x, start: now(-1, 0), end: currentYear(1,2,3,4)}]\n")
    assert said == [
        '1:27 inputs[0].start: YAML ends the value at the comma: write it in quotes, start: "now(-1,0)"',
        '1:44 inputs[0].end: YAML ends the value at the comma: write it in quotes, end: "currentYear(1,2,3,4)"',
    ]


@pytest.mark.parametrize(
    "text",
    ['a: {start: "now(0,0)", end: today(0), b: (x}', "start: now(0,0)", "a: {b: f(x, c: d}", "a: {b: f(x, c, d: e}"],
)
def test_what_is_something_else(text: str) -> None:
    assert problems(text) == []


def test_what_is_not_closed_is_shown_where_it_begins() -> None:
    files = Files()
    read_file(Path("a.yaml"), b'kind: feed\nname: "x\nfrequency: days(1)\n', files)
    (problem,) = files.problems
    assert (problem.position.line, problem.snippet) == (2, 'name: "x')
