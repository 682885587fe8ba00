"""The available instances of a feed, as a set that also knows their order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from datetime import datetime
from functools import cached_property


class InstanceSet(frozenset[datetime]):
    """Instances of a feed; they are sorted once, when somebody asks for their order."""

    @classmethod
    def of(cls, instances: Collection[datetime]) -> InstanceSet:
        """Those instances; the same object where they are such a set."""
        return instances if isinstance(instances, InstanceSet) else cls(instances)

    @cached_property
    def ordered(self) -> list[datetime]:
        """All of them, oldest first."""
        return sorted(self)

    def backwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Those from ``first`` to ``last``, newest first."""
        return map(self.ordered.__getitem__, reversed(self._between(first, last)))

    def forwards(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """The same, oldest first."""
        return map(self.ordered.__getitem__, self._between(first, last))

    def _between(self, first: datetime, last: datetime) -> range:
        return range(bisect_left(self.ordered, first), bisect_right(self.ordered, last))
