"""Retention: nothing is evicted while late data is still awaited, and archives lie apart from what they archive."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.storage.templates import cluster_of, is_of_feed, located, templates_on
from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.validation import unknown_word
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process


def check_retention(definitions: Definitions) -> Iterator[Problem]:
    """Limits below the late-arrival cut-off, bad archives, idle lifecycles, late inputs whose feed has no cut-off."""
    for feed in definitions.feeds.values():
        late = feed.entity.late_arrival
        for index, entry in enumerate(feed.entity.clusters):
            limit = entry.retention.limit if entry.retention else None
            if limit is not None and late is not None and limit.length < late.cut_off.length:
                message = f"{limit} must not be shorter than late_arrival.cut_off, which is {late.cut_off}"
                yield feed.problem(("clusters", index, "retention", "limit"), message)
        yield from _unknown_archives(definitions, feed)
        yield from _archives_within(definitions, feed)
        yield from _nothing_to_retain(feed)
    for process in definitions.processes.values():
        yield from _inputs_that_are_never_late(definitions, process)


def _unknown_archives(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    for index, entry in enumerate(feed.entity.clusters):
        name = entry.retention.archive_cluster if entry.retention else None
        if name is not None and name not in definitions.clusters and not definitions.is_unparsed("cluster", name):
            message = unknown_word("cluster", name, tuple(definitions.clusters))
            yield feed.problem(("clusters", index, "retention", "archive_cluster"), message)


def _archives_within(definitions: Definitions, feed: Declared[Feed]) -> Iterator[Problem]:
    """An instance cannot be moved into itself, nor to where the others of its feed are."""
    for index, _, cluster in definitions.feed_clusters(feed):
        templates = [one for one in templates_on(feed.entity, index) if not is_of_feed(*one)]
        try:
            places = {path: located(feed.entity, path, template, cluster, cluster) for path, template in templates}
        except ExpressionError:
            continue  # said elsewhere
        archive = ("clusters", index, "retention", "archive_to")
        if archive not in places or cluster_of(feed.entity, archive, cluster.name) != cluster.name:
            continue
        inner = f"{places[archive].absolute}/"
        for path, place in places.items():
            outer = f"{place.absolute}/"
            if inner != outer and (inner.startswith(outer) or outer.startswith(inner)):
                apart = f"the {path[-1]} at {place.shown!r} must not be inside of each other"
                message = f"{places[archive].shown!r} and {apart}"
                yield feed.problem(archive, message)


def _nothing_to_retain(feed: Declared[Feed]) -> Iterator[Problem]:
    entity = feed.entity
    if entity.versions:
        return
    if entity.lifecycle and not any(entry.retention for entry in entity.clusters):
        message = "no cluster of the feed declares retention, so there is nothing to look for"
        yield feed.problem(("lifecycle", "retention"), message, at_key=True)
    for index, entry in enumerate(entity.clusters):
        if entry.lifecycle and not entry.retention:
            message = f"cluster {entry.name!r} declares no retention, so there is nothing to look for"
            yield feed.problem(("clusters", index, "lifecycle", "retention"), message, at_key=True)


def _inputs_that_are_never_late(definitions: Definitions, process: Declared[Process]) -> Iterator[Problem]:
    feeds = {declared.name: declared.feed for declared in process.entity.inputs}
    late = process.entity.late_process
    for index, entry in enumerate(late.inputs if late else ()):
        feed = definitions.feeds.get(feeds.get(entry.input, ""))
        if feed is not None and feed.entity.late_arrival is None:
            message = (
                f"feed {feed.entity.name!r} declares no late_arrival.cut_off, so input {entry.input!r} is never late"
            )
            yield process.problem(("late_process", "inputs", index, "input"), message)
