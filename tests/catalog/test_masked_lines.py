"""The source line of a fault of YAML is shown, and what may be secret in it is not."""

from __future__ import annotations

import pytest

from falcon_assets.catalog.yaml_files.secrets import masked_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a: 1\nb: [x, 'y\n", "b: [x, 'y", id="no-secrets"),
        pytest.param(
            "storage_options: {key: abc, secret: def\n", "storage_options: ***** **** ******* ***", id="same-line"
        ),
        pytest.param("storage_options:\n  key: abc\n  secret: d: e\n", "  secret: ** *", id="below"),
        pytest.param("storage_options:\n  key: abc\nname: [x\n", "name: [x", id="after"),
        pytest.param("storage_options: {key: 'abc\nname: def\n", "name: ***", id="quote-not-closed"),
        pytest.param("storage_options: {key: abc,\nname: def\n", "name: ***", id="bracket-not-closed"),
        pytest.param("storage_options: {key: abc}\nname: d: e\n", "name: d: e", id="closed"),
        pytest.param("notification:\n  to: [x]\na: {b: c\nd: [e]\n", "d: [e]", id="a-bracket-of-another-key"),
        pytest.param("storage_options: {a: b}\n---\nname: d: e\n", "name: d: e", id="document"),
        pytest.param("notification:\n  to:\n  - url: json://u:p@h\n  - {x\n", "  - **", id="receivers"),
        pytest.param("notification:\n- url: json://u:p@h: x\n", "- url: ************* *", id="list-at-its-key"),
        pytest.param("properties:\n  db_password: 'abc\n", "  db_password: ****", id="property"),
        pytest.param("properties:\n  ssh.private-key: |\n    abc\n    d: [e\n", "    d: **", id="lines-of-a-property"),
        pytest.param(
            "properties: {threshold: 5, api_token: abc: d}\n",
            "properties: {threshold: 5, api_token: **** **",
            id="flow",
        ),
        pytest.param(
            "properties:\n  db_password: abc\n  threshold: d: e\n", "  threshold: d: e", id="beside-a-property"
        ),
    ],
)
def test_the_last_line(text: str, shown: str) -> None:
    lines = text.splitlines()
    assert masked_line(lines, len(lines) - 1) == shown
