"""Snapshot feeds: what makes no sense where all instances share one path, and what is not offered for them yet."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.storage.templates import declared_templates
from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import Problem
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Input, Process


def check_snapshots(definitions: Definitions) -> Iterator[Problem]:
    """Snapshot feeds with times in their path, with what belongs to single instances, or used as if they had any."""
    for feed in definitions.feeds.values():
        if feed.entity.snapshot:
            yield from _timed(feed)
            for path, why in _refused(feed.entity):
                yield feed.problem(path, why, at_key=True)
    for process in definitions.processes.values():
        yield from _uses(definitions, process)


def _timed(feed: Declared[Feed]) -> Iterator[Problem]:
    for path, template in declared_templates(feed.entity):
        if path[-1] == "data" and template.is_timed:
            rule = "the data of a snapshot feed has no time in its path: take that out, or snapshot: true"
            yield feed.problem(path, f"{template.text!r}: {rule}")


def _refused(feed: Feed) -> Iterator[tuple[KeyPath, str]]:
    if feed.table is not None:
        yield ("table",), "a snapshot feed has locations: tables are not read as snapshots yet"
    if feed.versions is not None:
        yield ("versions",), "a snapshot feed is replaced by others, who keep no earlier versions"
    for index, entry in enumerate(feed.clusters):
        where = ("clusters", index)
        if entry.table is not None:
            yield (*where, "table"), "a snapshot feed has locations: tables are not read as snapshots yet"
        if entry.retention is not None:
            yield (*where, "retention"), "a snapshot feed has its present data only, which stays: take retention out"
        if entry.type == "target":
            yield (*where, "type"), "snapshot feeds are not replicated yet: take the target out"


def _uses(definitions: Definitions, process: Declared[Process]) -> Iterator[Problem]:
    for index, one in enumerate(process.entity.inputs):
        feed = definitions.feeds.get(one.feed)
        if feed is not None and feed.entity.snapshot and not _is_of_one_time(one):
            said = f"feed {one.feed!r} is a snapshot, of which only the present data can be read"
            rule = "start and end must be the same time, or both latest(0)"
            yield process.problem(("inputs", index, "start"), f"{said}: {rule}")
    for index, output in enumerate(process.entity.outputs):
        feed = definitions.feeds.get(output.feed)
        if feed is not None and feed.entity.snapshot:
            said = f"feed {output.feed!r} is a snapshot, and processes do not write such yet"
            yield process.problem(("outputs", index, "feed"), said)


def _is_of_one_time(one: Input) -> bool:
    is_time = one.start.call.kind is Kind.TIME
    newest = one.start.call.name == "latest" and one.start.call.args == (0,)
    return one.start.call == one.end.call and (is_time or newest)
