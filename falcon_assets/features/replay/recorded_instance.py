"""Recorded inputs and outputs of an instance that is replayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from falcon_assets.features.lineage.graph import Graph
from falcon_assets.features.lineage.store import graph_of, reached, versions_of_numbers
from falcon_assets.history.events.data_version import Version
from falcon_assets.planning.rollups import ROLLED_UP


@dataclass(frozen=True)
class RecordedInstance:
    """The versions that one run made, by feed, and read, by feed and instance, with those that a roll-up is made of."""

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


def recorded_instance(connection: Connection, version: Version, made: Iterable[Version]) -> RecordedInstance:
    """Returns inputs and outputs of the run that made ``version``; other runs may have made the same content."""
    graph = _graph(connection, version)
    outputs = {one.feed: one for one in made if (one.run_id, one.nominal) == (version.run_id, version.nominal)}
    inputs: dict[str, dict[datetime, Version]] = {}
    pending = [version]
    while pending:
        of = pending.pop()
        for edge in graph.edges:
            if edge.output == of.number and edge.run == of.run_id and edge.declared:
                read = graph.versions[edge.input]
                inputs.setdefault(read.feed, {})[read.instance] = read
                if _is_rolled_up(read):
                    pending.append(read)
    return RecordedInstance({**outputs, version.feed: version}, inputs)


def _graph(connection: Connection, version: Version) -> Graph:
    """The version with what it was made from, and with what roll-ups among that are made of, at any depth."""
    numbers: set[int] = set()
    pending = {version.number}
    while pending:
        found = reached(connection, pending, up=True, depth=1)
        pending = {
            one.number for one in versions_of_numbers(connection, found - numbers - pending) if _is_rolled_up(one)
        }
        numbers |= found
    return graph_of(connection, numbers)


def _is_rolled_up(version: Version) -> bool:
    return (version.process or "").endswith(ROLLED_UP)
