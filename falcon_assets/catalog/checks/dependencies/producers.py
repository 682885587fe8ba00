"""Who fills a feed: one process output per cluster, or replication, or nobody."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.errors import Problem
from falcon_assets.model.process import Process


def check_producers(definitions: Definitions) -> Iterator[Problem]:
    """Outputs to a feed that something else already fills on the same cluster."""
    taken: dict[tuple[str, str], tuple[Declared[Process], int]] = {}
    for process in definitions.processes.values():
        yield from _written_twice(process)
        for index, output in enumerate(process.entity.outputs):
            feed = definitions.feeds.get(output.feed)
            for entry in process.entity.clusters:
                on_cluster = feed.entity.on(entry.name) if feed else None
                other, other_index = taken.setdefault((output.feed, entry.name), (process, index))
                if other is not process:
                    where = other.document.position(("outputs", other_index, "feed"))
                    rule = f"is already produced by process {other.entity.name!r} at {where}"
                elif on_cluster is not None and on_cluster.type == "target":
                    rule = "is filled by replication (type: target), so no process can produce it there"
                else:
                    continue
                message = f"feed {output.feed!r} on cluster {entry.name!r} {rule}"
                yield process.problem(("outputs", index, "feed"), message)


def _written_twice(process: Declared[Process]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for index, output in enumerate(process.entity.outputs):
        if output.feed in first:
            message = f"feed {output.feed!r} is already written by output {first[output.feed]!r} of this process"
            yield process.problem(("outputs", index, "feed"), message)
        first.setdefault(output.feed, output.name)
