"""Deadlines that are worth nothing: when they come, what they watch is over."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.errors import Problem
from falcon_assets.model.feed import Feed
from falcon_assets.planning.rules.retries import timeout_of, timeout_text


def check_deadlines(definitions: Definitions) -> Iterator[Problem]:
    """Warnings: instances that are evicted before their feed's SLA, or time out before they should have started."""
    for feed in definitions.feeds.values():
        yield from _evicted_first(feed)
    for process in definitions.processes.values():
        sla = process.entity.sla
        if sla is not None and sla.should_start_in.length > timeout_of(process.entity):
            rule = f"is longer than the timeout, {timeout_text(process.entity)}: an instance times out before"
            yield process.warning(("sla", "should_start_in"), f"{sla.should_start_in} {rule}")


def _evicted_first(feed: Declared[Feed]) -> Iterator[Problem]:
    for index, entry in enumerate(feed.entity.clusters):
        limit, sla = entry.retention.limit if entry.retention else None, entry.sla or feed.entity.sla
        if sla is not None and limit is not None and sla.high.length > limit.length:
            rule = f"is longer than retention.limit on cluster {entry.name!r}, {limit}: an instance is evicted before"
            yield feed.warning((*(("clusters", index) if entry.sla else ()), "sla", "high"), f"{sla.high} {rule}")
