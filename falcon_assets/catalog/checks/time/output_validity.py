"""Processes that live longer than what they write: instances without an output to write do not run."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.errors import Problem
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.planning.time.timeline import Timeline, feed_timeline, process_timeline
from falcon_assets.planning.workloads.process_workload import written


def check_output_validity(definitions: Definitions) -> Iterator[Problem]:
    """Outputs that never exist together, and warnings where some instances of a process have none to write."""
    for process in definitions.processes.values():
        for entry in process.entity.clusters:
            if entry.name in definitions.clusters:
                yield from _on(definitions, process, entry.name)


def _on(definitions: Definitions, process: Declared[Process], cluster: str) -> Iterator[Problem]:
    nominal = process_timeline(process.entity, cluster)
    spans: dict[int, range] = {}
    for index, output in enumerate(process.entity.outputs):
        feed = definitions.feeds.get(output.feed)
        if feed is None or feed.entity.on(cluster) is None:
            return  # said elsewhere
        spans[index] = written(nominal, feed_timeline(feed.entity, cluster), output, process.entity.timezone)
    if not all(spans.values()):
        return  # the check of windows says so
    if spans and max(span.start for span in spans.values()) >= min(span.stop for span in spans.values()):
        lives = "; ".join(f"{process.entity.outputs[k].name}: {_life(nominal, span)}" for k, span in spans.items())
        yield process.problem(("outputs",), f"never exist together on cluster {cluster!r}, so nothing runs: {lives}")
        return
    for index, span in spans.items():
        missing = [f"before {format_instant(nominal.instance(span.start))}"] if span.start else []
        missing += [f"from {format_instant(nominal.instance(span.stop))} on"] if span.stop < nominal.count else []
        if missing:
            output = process.entity.outputs[index]
            feed_there = feed_timeline(definitions.feeds[output.feed].entity, cluster)
            validity = f"{format_instant(feed_there.start)} to {format_instant(feed_there.end)}"
            yield process.warning(
                ("outputs", index, "instance"),
                f"instances {' and '.join(missing)} do not run on cluster {cluster!r}: output {output.name!r} lies "
                f"outside the validity of feed {output.feed!r} there, {validity}",
            )


def _life(nominal: Timeline, span: range) -> str:
    return f"{format_instant(nominal.instance(span.start))} to {format_instant(nominal.instance(span.stop - 1))}"
