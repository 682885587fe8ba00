"""The next available instances, from one of them on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from falcon_assets.model.feed import Feed
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.kinds.snapshots import refreshed_at
from falcon_assets.storage.kinds.storage_kind import StorageKind

_ASKED_FOR = 16
"""Instances that are asked for one by one before folders are listed: each takes as long as a folder."""


@dataclass(frozen=True)
class AvailableInstances:
    """The available instances of ``feed``; without ``clock``, data of a snapshot feed counts, of any time.

    ``admits`` says which of them a reader may take.

    The nearest ones are asked for one by one; after that folders are listed, in spans that grow. So the next one is
    found soon even decades away, and nothing beyond it is asked for.
    """

    kind: StorageKind
    feed: Feed
    clock: Clock | None = field(default_factory=Clock)
    admits: Callable[[datetime], bool] = lambda instance: True

    def backwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        return self._found(first, last, newest_first=True)

    def forwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        return self._found(first, last, newest_first=False)

    def _found(self, first: datetime, last: datetime, *, newest_first: bool) -> Iterator[datetime]:
        paths = InstancePaths(self.feed, self.kind.store.cluster)
        indexes = paths.timeline.indexes(first, last)[:: -1 if newest_first else 1]
        if self.feed.snapshot:
            yield from self._of_snapshot(list(map(paths.timeline.instance, indexes)), paths.data(paths.timeline.start))
            return
        listed: Iterable[tuple[datetime, str]]
        for number, span in enumerate(_growing(indexes)):
            ends = sorted((paths.timeline.instance(span[0]), paths.timeline.instance(span[-1])))
            if number == 0:
                listed = ((one, paths.data(one)) for one in map(paths.timeline.instance, span))
            else:
                found = self.kind.instances(self.feed, [(ends[0], ends[1])])
                listed = sorted(found, reverse=newest_first)
            yield from (
                instance
                for instance, path in self.kind.asked_together(listed)
                if self.kind.is_available(self.feed, path) and self.admits(instance)
            )

    def _of_snapshot(self, wanted: Sequence[datetime], path: str) -> Iterator[datetime]:
        if self.clock is not None:
            refreshed = refreshed_at(self.kind, self.feed, path, self.clock)
            yield from (one for one in wanted if refreshed is not None and one <= refreshed)
        elif self.kind.is_available(self.feed, path):
            yield from wanted


def _growing(indexes: range) -> Iterator[range]:
    begin, length = 0, _ASKED_FOR
    while part := indexes[begin : begin + length]:
        yield part
        begin, length = begin + length, length * 4
