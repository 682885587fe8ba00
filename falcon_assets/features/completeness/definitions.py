"""Checks of declared completeness."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.errors import Problem
from falcon_assets.features.completeness.counting import can_count
from falcon_assets.model.completeness import Expected
from falcon_assets.model.feed import Feed

_KEY = "completeness"
_READABLE = ("parquet", "orc", "csv", "json")
"""Formats in which counts are read without Spark."""


def check_completeness(definitions: Definitions) -> Iterator[Problem]:
    """Completeness of what does not land from outside, counts that cannot be read, records that nobody counts."""
    for feed in definitions.feeds.values():
        if feed.entity.completeness is None:
            continue
        if feed.entity.snapshot:
            yield feed.problem((_KEY,), "a snapshot feed has no instances of its own to count: remove it", at_key=True)
        yield from _written(definitions, feed)
        if not all(can_count(feed.entity, entry.name) for entry in feed.entity.clusters):
            yield feed.warning((_KEY,), "its files are not counted, so the records that came have to be reported")
        expected = feed.entity.completeness.expected
        if isinstance(expected, Expected) and expected.feed:
            yield from _counts(definitions, feed, expected.feed)


def _written(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    name = feed.entity.name
    for process in definitions.processes.values():
        own = {entry.name for entry in process.entity.clusters}
        both = sorted(own & {entry.name for entry in feed.entity.clusters})
        if both and any(output.feed == name for output in process.entity.outputs):
            said = f"process {process.entity.name!r} writes the feed on cluster {both[0]!r}, whole or not at all"
            yield feed.problem((_KEY,), f"{said}: only what lands from outside is counted", at_key=True)


def _counts(definitions: Definitions, feed: Declared[Feed], name: str) -> Iterator[Problem]:
    where = (_KEY, "expected", "feed")
    counts = definitions.feeds.get(name)
    if counts is None:
        if not definitions.is_unparsed("feed", name):
            yield feed.problem(where, f"there is no feed {name!r}")
        return
    if name == feed.entity.name:
        yield feed.problem(where, "a feed cannot have its own counts: name another feed")
    elif counts.entity.completeness is not None or counts.entity.rollup is not None:
        yield feed.problem(where, f"the counts of feed {name!r} wait for others themselves: they must just land")
    for entry in feed.entity.clusters:
        if entry.type != "target" and counts.entity.on(entry.name) is None:
            said = f"feed {name!r} is not on cluster {entry.name!r}, where the counts are needed"
            yield feed.problem(where, said)
    if counts.entity.format not in _READABLE or counts.entity.table is not None:
        known = ", ".join(_READABLE)
        yield feed.problem(where, f"the counts of feed {name!r} cannot be read: they must be files in {known}")
