"""A small set of right definitions, to be made wrong one place at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.errors import InvalidDefinitionsError

CLUSTERS = """\
kind: cluster
name: primary
colo: east
interfaces: {write: {endpoint: data/primary}, execute: {endpoint: "local[2]"}}
---
kind: cluster
name: backup
colo: west
interfaces: {write: {endpoint: data/backup}, execute: {endpoint: "local[2]"}}
"""
FEEDS = """\
kind: feed
name: raw
frequency: hours(1)
partitions: [carrier]
late_arrival: {cut_off: hours(6)}
locations:
  data: /raw/${YEAR}/${MONTH}/${DAY}/${HOUR}
clusters:
  - name: primary
    type: source
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
    retention: {limit: days(90)}
  - name: backup
    type: target
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
---
kind: feed
name: delays
frequency: hours(1)
locations:
  data: /delays/${YEAR}/${MONTH}/${DAY}/${HOUR}
clusters:
  - name: primary
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
"""
PROCESSES = """\
kind: process
name: hourly
frequency: hours(1)
clusters:
  - name: primary
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
inputs:
  - {name: flights, feed: raw, start: "now(0,0)", end: "now(0,0)"}
outputs:
  - {name: out, feed: delays, instance: "now(0,0)"}
workflow: {engine: spark-sql, path: hourly.sql}
late_process: {policy: final, inputs: [{input: flights}]}
"""
FILES = {"clusters.yaml": CLUSTERS, "feeds.yaml": FEEDS, "processes.yaml": PROCESSES, "hourly.sql": "SELECT 1"}


def write(root: Path, files: dict[str, str]) -> Path:
    """Writes the files below ``root``, with their folders."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def changed(file: str, old: str, new: str) -> dict[str, str]:
    """The right definitions with one text of one file replaced; it must be there exactly once."""
    assert FILES[file].count(old) == 1, f"{old!r} is {FILES[file].count(old)} times in {file}"
    return {**FILES, file: FILES[file].replace(old, new)}


def load(root: Path, files: dict[str, str], *, strict: bool = False) -> EntityStore:
    """Writes the files and loads them."""
    return load_entities(write(root, files), strict=strict)


def problems(root: Path, files: dict[str, str], *, strict: bool = False) -> list[str]:
    """What is wrong with the files, one line each, paths relative to ``root``."""
    with pytest.raises(InvalidDefinitionsError) as caught:
        load(root, files, strict=strict)
    return [str(problem).replace(f"{root}/", "").replace(str(root), ".") for problem in caught.value.problems]
