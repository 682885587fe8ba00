"""Values of metrics from the ledger and Dagster; the cost does not depend on the length of the history."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from itertools import islice
from typing import TypeAlias

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.landing.rules import lag
from falcon_assets.features.metrics import declared
from falcon_assets.features.metrics.declared import Metric
from falcon_assets.history.dagster_internals.tables import last_ticks, newest_event, unfinished_jobs
from falcon_assets.history.folding.totals import FEEDS, PROCESSES, Total, breaches, open_breaches, totals
from falcon_assets.history.overview import folded_up_to
from falcon_assets.history.tables.row_values import COPIED_BYTES, EVICTED_BYTES
from falcon_assets.hooks import hooks
from falcon_assets.instances.coordination.queues import Queues
from falcon_assets.instances.outbox.store import waiting_events
from falcon_assets.instances.store.newest_instances import newest_available
from falcon_assets.instances.store.process_rows import PROCESS_ROWS
from falcon_assets.instances.views.asked import asked_for
from falcon_assets.instances.views.due import in_order, unrecorded
from falcon_assets.instances.views.feed_writers import due_of_feed
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.instances.views.waiting_reasons import recorded_reasons
from falcon_assets.model.queue import Queue
from falcon_assets.model.sla import SlaLevel
from falcon_assets.planning.instance_record import FeedState, InstanceState

Labels: TypeAlias = tuple[str, ...]

ASKED_WHY = 1_000
"""Waiting instances whose reason is determined, the oldest first."""
NOT_ASKED = "not_asked"
"""The reason of the others."""
_STATES = [one for one in InstanceState if one is not InstanceState.READY]  # that is WAITING, for a slot
_FEED_STATES = (FeedState.AVAILABLE, FeedState.EVICTED)


@dataclass
class Samples:
    values: dict[Metric, dict[Labels, float]] = field(default_factory=lambda: {one: {} for one in declared.METRICS})

    def put(self, metric: Metric, value: float, *labels: str) -> None:
        self.values[metric][labels] = value

    def add(self, metric: Metric, number: float, *labels: str) -> None:
        own = self.values[metric]
        own[labels] = own.get(labels, 0) + number


def read_samples(connection: Connection, store: EntityStore, now: datetime, queues: Mapping[str, Queue]) -> Samples:
    """Reads all metrics; entities that are not declared any more have counters only."""
    samples = Samples()
    samples.put(declared.UP, 1)
    installed = (version("falcon-assets"), version("dagster"), platform.python_version())
    samples.put(declared.BUILD, 1, *installed)
    samples.put(declared.BEHIND, max(newest_event(connection) - folded_up_to(connection), 0))
    known: dict[str, list[Total]] = {}
    for one in totals(connection):
        if one.cluster in store.clusters:
            known.setdefault(one.what, []).append(one)
    used = Queues(queues, store, unfinished_jobs(connection) if queues else ())
    _processes(samples, connection, store, known.get(PROCESSES, ()), now, used)
    _feeds(samples, connection, store, known.get(FEEDS, ()), now)
    for one in known.get(COPIED_BYTES, ()):
        samples.put(declared.REPLICATED, one.number, one.entity, one.cluster)
    for one in known.get(EVICTED_BYTES, ()):
        samples.put(declared.EVICTED, one.number, one.entity, one.cluster, one.label)
    _sla(samples, connection, store)
    for receiver, number in waiting_events(connection, store.clusters).items():
        samples.put(declared.WAITING_EVENTS, number, receiver)
    declared_by_name = {one.name: one for one in declared.METRICS}
    for of_feature in hooks().metric_values(connection=connection, store=store, now=now):
        for name, values in of_feature.items():
            samples.values[declared_by_name[name]].update(values)
    for tick in last_ticks(connection):
        labels = (tick.location, tick.kind, tick.name)
        samples.put(declared.TICK_TIME, tick.began, *labels)
        samples.put(declared.TICK_SUCCEEDED, tick.succeeded, *labels)
        if tick.ended is not None:
            samples.put(declared.TICK_DURATION, max(tick.ended - tick.began, 0), *labels)
    return samples


def _processes(
    samples: Samples,
    connection: Connection,
    store: EntityStore,
    known: Iterable[Total],
    now: datetime,
    queues: Queues,
) -> None:
    """Counts instances of processes and replications by state and reason, as ``falcon instance summary`` does."""
    query = InstanceQuery(filters=(("state", InstanceState.WAITING.value),), sort="instance", limit=ASKED_WHY)
    asked = asked_for(connection, store, query, now)
    kinds = {one.key: one.kind for one in asked}
    states: dict[tuple[str, str], Counter[InstanceState]] = {key: Counter() for key in kinds}
    for one in known:
        if (one.entity, one.cluster) in states:
            states[one.entity, one.cluster][InstanceState(one.label)] += one.number
    for key, number in unrecorded(connection, PROCESS_ROWS, asked).items():
        states[key][InstanceState.WAITING] += number
    for again in PROCESS_ROWS.to_run_again(connection, [one.span for one in asked]):
        own = states[again.process, again.cluster]
        own[InstanceState(again.state)] -= again.number
        own[InstanceState.WAITING] += again.number
    for key, own in states.items():
        for state in _STATES:
            samples.put(declared.INSTANCES, own[state], kinds[key], *key, state.value)
    found = [key for key, _ in islice(in_order(connection, PROCESS_ROWS, asked, query), ASKED_WHY)]
    workloads = {(one.name, one.cluster): one for one in store.workloads}
    why = recorded_reasons(connection, store, [(workloads[key[:2]], key[2]) for key in found], now, (), queues)
    rest = Counter({key: own[InstanceState.WAITING] for key, own in states.items()})
    for instance in found:
        key = instance[:2]
        rest[key] -= 1
        samples.add(declared.WAITING, 1, kinds[key], *key, why[instance]["kind"])
    for key, number in rest.items():
        if number > 0:
            samples.put(declared.WAITING, number, kinds[key], *key, NOT_ASKED)


def _feeds(samples: Samples, connection: Connection, store: EntityStore, known: Iterable[Total], now: datetime) -> None:
    numbers = {(one.entity, one.cluster, one.label): one.number for one in known}
    newest = newest_available(connection, now)
    for feed in store.feeds.values():
        for cluster, _ in store.feed_clusters(feed):
            place = (feed.name, cluster.name)
            for state in _FEED_STATES:
                number = numbers.get((*place, state.value), 0)
                samples.put(declared.INSTANCES, number, "feed", *place, state.value)
            timeline, due = due_of_feed(store, feed, cluster.name, now)
            last = newest.get((cluster.name, feed.name))
            samples.put(declared.LAG, lag(timeline, last, due, now).total_seconds(), *place)
            if last is not None:
                samples.put(declared.NEWEST, last.timestamp(), *place)


def _sla(samples: Samples, connection: Connection, store: EntityStore) -> None:
    """Counts breaches; open ones are 0, not missing, where an entity has none left."""
    for one in breaches(connection):
        if one.cluster in store.clusters:
            labels = _breached(one)
            samples.add(declared.BREACHES, one.number, *labels)
            samples.add(declared.OPEN_BREACHES, 0, *labels)
    for one in open_breaches(connection):
        if one.cluster in store.clusters:
            samples.add(declared.OPEN_BREACHES, one.number, *_breached(one))


def _breached(one: Total) -> Labels:
    return one.what, one.entity, one.cluster, SlaLevel(one.label).severity
