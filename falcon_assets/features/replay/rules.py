"""What is recorded of an instance of a process that is to be computed once more: what it read, and what it made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.features.lineage.graph import Graph, Version


@dataclass(frozen=True)
class RecordedInstance:
    """What one run read and made.

    Attributes:
        outputs: The versions that it made, by feed.
        inputs: The versions that it read, by feed and instance.
    """

    outputs: Mapping[str, Version]
    inputs: Mapping[str, Mapping[datetime, Version]]

    def read_of(self, feed: str) -> RecordedInstances:
        """The instances of a feed that it read, as windows ask for those that were available."""
        return RecordedInstances(sorted(self.inputs.get(feed, ())))


@dataclass(frozen=True)
class RecordedInstances:
    """Instances that were read, oldest first."""

    instances: Sequence[datetime]

    def backwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Those from ``first`` to ``last``, both included, newest first."""
        return (one for one in reversed(self.instances) if first <= one <= last)

    def forwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """The same, oldest first."""
        return (one for one in self.instances if first <= one <= last)


def recorded_instance(graph: Graph, version: Version, made: Iterable[Version]) -> RecordedInstance:
    """What the run read and made that made ``version``.

    A version may have been made more than once, by the same content: what other runs read for it is left out.

    Args:
        graph: With the inputs of ``version``.
        version: What is to be made again.
        made: The versions of all outputs of the instance.
    """
    outputs = {one.feed: one for one in made if (one.run_id, one.nominal) == (version.run_id, version.nominal)}
    inputs: dict[str, dict[datetime, Version]] = {}
    for edge in graph.edges:
        if edge.output == version.number and edge.run == version.run_id and edge.declared:
            read = graph.versions[edge.input]
            inputs.setdefault(read.feed, {})[read.instance] = read
    return RecordedInstance({**outputs, version.feed: version}, inputs)
