"""Places that Spark says hold no passwords, and folders stay as they are called."""

from __future__ import annotations

import json

from falcon_assets.planning.captured import parse_captured


def test_addresses_of_databases() -> None:
    roots = ["jdbc:oracle:thin:scott/tiger@//h:1521/x#T", "jdbc:postgresql://h/db#t", "s3a://data/token=abc/x"]
    read = {"roots": roots, "paths": [], "isComplete": True}
    write = {"path": "jdbc:oracle:thin:scott/tiger@//h:1521/x#T", "roots": [roots]}
    found = parse_captured(json.dumps({"isComplete": True, "reads": [read], "writes": [write]}))
    expected = ("jdbc:oracle:thin:scott/*****@//h:1521/x#T", *roots[1:])
    assert found.reads[0].roots == found.writes[0].roots[0] == expected
    assert found.writes[0].path == expected[0]
