"""The available instances of a feed, as a set that also knows their order."""

from __future__ import annotations

from bisect import bisect_right
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

    def backwards(self, moment: datetime) -> Iterator[datetime]:
        """Those at or before ``moment``, newest first."""
        ordered = self.ordered
        return map(ordered.__getitem__, range(bisect_right(ordered, moment) - 1, -1, -1))
