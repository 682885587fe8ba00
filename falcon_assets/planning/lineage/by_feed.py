"""Many versions, or many instances of processes, in one line for each feed or process and cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.lineage.graph import Version

_Any = TypeVar("_Any")


@dataclass(frozen=True)
class Several:
    """Versions of a feed, or instances of a process, on a cluster.

    Attributes:
        name: Of the feed or the process.
        cluster: Where.
        count: How many.
        first: The earliest instance.
        last: The latest.
        states: How many have each status, the most first; none: they have no status.
    """

    name: str
    cluster: str
    count: int
    first: datetime
    last: datetime
    states: tuple[tuple[str, int], ...] = ()

    def words(self, one: str) -> str:
        """It in words; ``one``: what one of them is called."""
        states = ", ".join(f"{many:,} {state}" for state, many in self.states)
        plural = one if self.count == 1 else f"{one}s"
        span = format_instant(self.first)
        span += f" to {format_instant(self.last)}" if self.last != self.first else ""
        return f"{self.name} on {self.cluster}: {self.count:,} {plural}{f' ({states})' if states else ''}, {span}"


def versions_by_feed(versions: Iterable[Version]) -> list[Several]:
    """Versions by feed and cluster, in the order of the names."""
    found = []
    for (feed, cluster), own in _by(versions, lambda one: (one.feed, one.cluster)).items():
        states = Counter(one.status.value for one in own).most_common()
        instances = [one.instance for one in own]
        found.append(Several(feed, cluster, len(own), min(instances), max(instances), tuple(states)))
    return sorted(found, key=lambda one: (one.name, one.cluster))


def instances_by_process(instances: Iterable[tuple[str, str, datetime]]) -> list[Several]:
    """Instances (process, cluster, nominal time) by process and cluster, in the order of the first of each."""
    found = []
    for (process, cluster), own in _by(instances, lambda one: one[:2]).items():
        times = [nominal for _, _, nominal in own]
        found.append(Several(process, cluster, len(own), min(times), max(times)))
    return found


def _by(every: Iterable[_Any], key: Callable[[_Any], tuple[str, str]]) -> dict[tuple[str, str], list[_Any]]:
    found: dict[tuple[str, str], list[_Any]] = {}
    for one in every:
        found.setdefault(key(one), []).append(one)
    return found
