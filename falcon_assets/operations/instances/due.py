"""The instances that a query is about: of each workload a span, and in it those that no run was given yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import UnknownEntityError
from falcon_assets.ledger.instance_pages import Span, Steps, counted_steps, nominals_in
from falcon_assets.ledger.queries import progress
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed
from falcon_assets.operations.instances.query import InstanceQuery, Key
from falcon_assets.orchestration.coordination.cluster_snapshot import progress_key
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.planning.workloads.workload import Workload

_MOMENT = timedelta(microseconds=1)
_CHUNK = 500
_LARGEST_CHUNK = 10_000


@dataclass(frozen=True)
class Asked:
    """Instances of a workload that are asked for.

    Attributes:
        workload: The workload.
        span: Between which times they are.
        pending_from: No instance before it is pending, but what has a row says so.
        due: None after it is due, where only those are asked for that are.
    """

    workload: Workload
    span: Span
    pending_from: datetime
    due: datetime

    @property
    def key(self) -> tuple[str, str]:
        """Names the workload."""
        return self.workload.name, self.workload.cluster

    @property
    def indexes(self) -> range:
        """Of those in the timeline that may be pending."""
        timeline = self.workload.timeline
        first, last = max(self.span.first, self.pending_from), min(self.span.last, self.due)
        return timeline.indexes(first, last) if first <= last and timeline.count else range(0)

    def cut(self, after: Key | None, *, by_time: bool, descending: bool) -> Asked | None:
        """What of it comes after an instance in the order; None: nothing."""
        if after is None:
            return self
        first, last = self.span.first, self.span.last
        own, other = self.key, after[:2]
        beyond = own < other if descending else own > other
        if by_time or own == other:
            includes = by_time and beyond
            if descending:
                last = min(last, after[2] if includes else after[2] - _MOMENT)
            else:
                first = max(first, after[2] if includes else after[2] + _MOMENT)
        elif not beyond:
            return None
        span = Span(*own, first, last)
        return Asked(self.workload, span, self.pending_from, self.due) if first <= last else None

    def pending(self, connection: Connection, *, descending: bool) -> Iterator[datetime]:
        """Those that have no row, in order; few are asked for at a time."""
        for indexes in _chunks(self.indexes, descending=descending):
            nominals = _nominals(self.workload.timeline, indexes)
            there = nominals_in(connection, Span(*self.key, nominals[0], nominals[-1]))
            yield from (one for one in (reversed(nominals) if descending else nominals) if one not in there)


def asked_for(connection: Connection, store: EntityStore, query: InstanceQuery, now: datetime) -> list[Asked]:
    """The workloads that the query is about, by name and cluster.

    Raises:
        UnknownEntityError: the query names what is not there.
    """
    chosen = sorted(_chosen(store, query), key=lambda one: (one.name, one.cluster))
    settled = {cluster: progress(connection, cluster) for cluster in {one.cluster for one in chosen}}
    found = []
    for one in chosen:
        first = query.start or datetime.min.replace(tzinfo=now.tzinfo)
        last = query.last or datetime.max.replace(tzinfo=now.tzinfo)
        pending_from = settled[one.cluster].get(progress_key(one), one.timeline.start)
        due = last if query.alone else now - one.delay
        if first <= last:
            found.append(Asked(one, Span(one.name, one.cluster, first, last), pending_from, due))
    return found


def count_pending(connection: Connection, asked: Iterable[Asked]) -> Mapping[tuple[str, str], int]:
    """How many instances without a row each workload has in its span."""
    found: dict[tuple[str, str], int] = {}
    steps: list[Steps] = []
    for one in asked:
        indexes, timeline = one.indexes, one.workload.timeline
        if not indexes:
            continue
        span = Span(*one.key, timeline.instance(indexes[0]), timeline.instance(indexes[-1]))
        found[one.key] = len(indexes)
        if timeline.frequency.is_absolute:
            steps.append(Steps(span, timeline.start, int(timeline.frequency.length.total_seconds())))
        else:  # days and months: there are few
            found[one.key] = len(set(_nominals(timeline, indexes)) - nominals_in(connection, span))
    for key, number in counted_steps(connection, steps).items():
        found[key] -= number
    return found


def kind_of_workload(workload: Workload) -> str:
    """What its instances are instances of."""
    return "replication" if isinstance(workload.entity, Feed) else "process"


def _chosen(store: EntityStore, query: InstanceQuery) -> list[Workload]:
    if query.cluster is not None and query.cluster not in store.clusters:
        close = nearest(query.cluster, store.clusters)
        raise UnknownEntityError(f"there is no cluster {query.cluster!r}{close}")
    named = [one for one in store.workloads if query.name in (None, one.name, one.entity.name)]
    if query.name in store.processes:
        named = [one for one in named if kind_of_workload(one) == "process"]
    if not named and query.name in store.feeds:
        raise UnknownEntityError(f"feed {query.name!r} is not replicated to a cluster: there are no instances to run")
    if not named and query.name is not None and query.name not in store.processes:
        known = [*store.processes, *store.feeds]
        raise UnknownEntityError(f"there is no process or feed {query.name!r}{nearest(query.name, known)}")
    return [one for one in named if _fits(one, query)]


def _fits(one: Workload, query: InstanceQuery) -> bool:
    return (
        query.cluster in (None, one.cluster)
        and (query.text or "").casefold() in one.name.casefold()
        and query.fits("entity", one.name, one.entity.name)
        and query.fits("kind", kind_of_workload(one))
        and query.fits("cluster", one.cluster)
    )


def _nominals(timeline: Timeline, indexes: range) -> Sequence[datetime]:
    return list(dict.fromkeys(map(timeline.instance, indexes)))


def _chunks(indexes: range, *, descending: bool) -> Iterator[range]:
    size = _CHUNK
    while indexes:
        yield indexes[-size:] if descending else indexes[:size]
        indexes = indexes[:-size] if descending else indexes[size:]
        size = min(2 * size, _LARGEST_CHUNK)
