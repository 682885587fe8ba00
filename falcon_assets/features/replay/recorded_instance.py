"""Recorded inputs and outputs of an instance that is replayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.features.lineage.graph import Graph
from falcon_assets.history.events.data_version import Version


@dataclass(frozen=True)
class RecordedInstance:
    """The versions that one run made, by feed, and read, by feed and instance."""

    outputs: Mapping[str, Version]
    inputs: Mapping[str, Mapping[datetime, Version]]

    def read_of(self, feed: str) -> RecordedInstances:
        return RecordedInstances(sorted(self.inputs.get(feed, ())))


@dataclass(frozen=True)
class RecordedInstances:
    instances: Sequence[datetime]

    def backwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        return (one for one in reversed(self.instances) if first <= one <= last)

    def forwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        return (one for one in self.instances if first <= one <= last)


def recorded_instance(graph: Graph, version: Version, made: Iterable[Version]) -> RecordedInstance:
    """Returns inputs and outputs of the run that made ``version``; other runs may have made the same content."""
    outputs = {one.feed: one for one in made if (one.run_id, one.nominal) == (version.run_id, version.nominal)}
    inputs: dict[str, dict[datetime, Version]] = {}
    for edge in graph.edges:
        if edge.output == version.number and edge.run == version.run_id and edge.declared:
            read = graph.versions[edge.input]
            inputs.setdefault(read.feed, {})[read.instance] = read
    return RecordedInstance({**outputs, version.feed: version}, inputs)
