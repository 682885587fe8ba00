"""What goes together with reading earlier instances of one's own outputs, and what does not."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Input, Process
from falcon_assets.planning.instances.dependencies import own_feeds
from falcon_assets.planning.time.timeline import feed_timeline, process_timeline
from falcon_assets.planning.windows.input_windows import input_instances

_COLUMNS_ARE_KNOWN = ("text", "binaryFile")


def check_own_outputs(definitions: Definitions) -> Iterator[Problem]:
    """Orders in which instances wait for what never comes, and first instances that would find no columns."""
    for process in definitions.processes.values():
        own = own_feeds(process.entity.inputs, process.entity.outputs)
        for index, declared in enumerate(process.entity.inputs):
            feed = definitions.feeds.get(declared.feed)
            if declared.feed in own and feed is not None:
                if not declared.optional:
                    yield from _order(process, declared)
                if _starts_without_columns(process.entity, declared, feed.entity):
                    rule = f"the first instance finds nothing of feed {declared.feed!r}, which has no columns then"
                    yield process.warning(("inputs", index, "feed"), f"{rule}: declare `schema:` in the feed")


def _order(process: Declared[Process], declared: Input) -> Iterator[Problem]:
    why = f"instances wait for earlier ones of their own (input {declared.name!r})"
    if process.entity.order == "LAST_ONLY":
        yield process.problem(("order",), f"LAST_ONLY would skip what others wait for: {why}; use FIFO")
    if process.entity.order == "LIFO":
        yield process.warning(("order",), f"LIFO does not put the newest first here: {why}")


def _starts_without_columns(process: Process, declared: Input, feed: Feed) -> bool:
    knows = feed.schema_ is not None or feed.format in _COLUMNS_ARE_KNOWN or not process.workflow.shares_session
    if knows or declared.start.call.kind is not Kind.TIME or declared.end.call.kind is not Kind.TIME:
        return False
    for entry in process.clusters:
        if feed.on(entry.name) is not None:
            first = process_timeline(process, entry.name).start
            try:
                if not input_instances(declared, feed_timeline(feed, entry.name), first, process.timezone):
                    return True
            except ExpressionError:
                continue  # the check of windows says so
    return False
