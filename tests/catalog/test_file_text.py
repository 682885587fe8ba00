from __future__ import annotations

import pytest

from falcon_assets.catalog.yaml_files.file_text import UnwritableError, normalised, rewritten, sections

FILE = """\
# first
a: 1   # one
---
# second
b: 2
--- # third
c: 3
...
"""


def test_sections_hold_documents_with_their_comments() -> None:
    assert [one.text for one in sections(FILE)] == ["# first\na: 1   # one\n", "\n# second\nb: 2\n", " # third\nc: 3\n"]


CHANGES: dict[str, tuple[dict[int, str | None], str]] = {
    "the first goes": ({0: None}, "# second\nb: 2\n--- # third\nc: 3\n...\n"),
    "one in the middle goes": ({1: None}, "# first\na: 1   # one\n--- # third\nc: 3\n...\n"),
    "the last goes": ({2: None}, "# first\na: 1   # one\n---\n# second\nb: 2\n...\n"),
    "two go": ({0: None, 1: None}, "# third\nc: 3\n...\n"),
    "all go": ({0: None, 1: None, 2: None}, ""),
    "another first": ({0: "a: 9\n"}, FILE.replace("# first\na: 1   # one\n", "a: 9\n")),
    "another second": ({1: "b: 9\n"}, FILE.replace("# second\nb: 2\n", "b: 9\n")),
}


@pytest.mark.parametrize(("changes", "expected"), CHANGES.values(), ids=CHANGES)
def test_documents_of_a_file_are_replaced(changes: dict[int, str | None], expected: str) -> None:
    assert rewritten(FILE, changes).lstrip(" ") == expected


def test_a_file_with_one_document_and_a_marker() -> None:
    assert rewritten("---\na: 1\n", {0: "a: 2\n"}) == "---\na: 2\n"
    assert rewritten("---\na: 1\n---\nb: 1\n", {0: None}) in ("---\nb: 1\n", "b: 1\n")


def test_documents_are_tidied() -> None:
    assert normalised("\n\n a: 1  \n b: |\n   x\n\n\n") == " a: 1\n b: |\n   x\n"
    assert normalised('a: "x  \n\n  y"') == 'a: "x\n\n  y"\n'


def test_other_line_breaks_of_yaml_stay() -> None:
    assert normalised('a: "x\u2028 y"\r\nb: 1') == 'a: "x\u2028 y"\nb: 1\n'


def test_blanks_that_mean_something_stay() -> None:
    assert normalised("a: |\n  x  \n  y\n") == "a: |\n  x  \n  y\n"


def test_what_cannot_be_written_is_said() -> None:
    with pytest.raises(UnwritableError):
        rewritten("a: 1\n\x85---\nb: 2\n", {5: None, 1: "x: [\n"})
