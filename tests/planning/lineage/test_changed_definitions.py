"""By which keys two definitions differ."""

from __future__ import annotations

from typing import Any

import pytest

from falcon_assets.features.lineage.difference import changed_keys

RAW = {"name": "raw", "start": "now(0,0)"}


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ({"schema": "a int"}, {"schema": "a int"}, ()),
        ({"schema": "a int"}, {"schema": "a bigint"}, ("schema",)),
        ({}, {"schema": "a int"}, ("schema",)),
        ({"schema": "a int"}, {}, ("schema",)),
        ({"snapshot": True}, {"snapshot": 1}, ("snapshot",)),
        (
            {"locations": {"data": "/a", "stats": "/s"}},
            {"locations": {"data": "/b", "stats": "/s"}},
            ("locations.data",),
        ),
        ({"inputs": [RAW]}, {"inputs": [{**RAW, "start": "now(-1,0)"}]}, ("inputs.raw.start",)),
        ({"inputs": [RAW]}, {"inputs": [RAW, {"name": "b"}]}, ("inputs.b",)),
        ({"inputs": [RAW, RAW]}, {"inputs": [RAW]}, ("inputs",)),
        ({"groups": ["a"]}, {"groups": ["a", "b"]}, ("groups",)),
        ({"tags": "x"}, {"tags": {"x": "y"}}, ("tags",)),
    ],
)
def test_keys(before: Any, after: Any, keys: tuple[str, ...]) -> None:
    assert changed_keys(before, after) == keys
