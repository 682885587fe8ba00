"""Instances downstream of others, over processes and replications."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.definition_versions import versions_for
from falcon_assets.errors import ExpressionError, QueryError
from falcon_assets.instances.operations.selection import Selected
from falcon_assets.instances.rules.pending_reruns import FeedInstance, replaced_by
from falcon_assets.instances.store.changed_inputs import late_readers
from falcon_assets.instances.store.known_instances import known_instances
from falcon_assets.model.process import Input
from falcon_assets.planning.input_windows import consumers
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload

_MOST = 100_000


def downstream_of(
    connection: Connection, store: EntityStore, again: Sequence[Selected], now: datetime
) -> list[Selected]:
    """The finished instances that read the outputs of ``again``, directly or not.

    Waiting instances will read the new outputs anyway, and are left out with their readers.

    Raises:
        QueryError: there are more than 100,000.
    """
    seen = {one.key for one in again}
    found: list[Selected] = []
    replaced = _outputs(again)
    while replaced:
        readers = {key: workload for key, workload in _readers(connection, store, replaced, now) if key not in seen}
        seen |= readers.keys()
        versions = versions_for(connection, readers.values())
        known = known_instances(connection, readers)
        reached = [Selected(readers[key], one.record, one.waiting, versions) for key, one in known.items()]
        following = [one for one in reached if one.request is None and _is_over(one)]
        found += following
        if len(found) > _MOST:
            raise QueryError(f"more than {_MOST:,} instances read it, directly or not: ask for fewer at once")
        replaced = _outputs(following)
    return sorted(found, key=lambda one: one.key)


def _is_over(one: Selected) -> bool:
    state = one.record.state
    open_states = (InstanceState.WAITING, InstanceState.READY, InstanceState.RUNNING, InstanceState.SUSPENDED)
    return not one.record.in_flight and state not in open_states


def _outputs(instances: Sequence[Selected]) -> set[FeedInstance]:
    return {made for one in instances for made in replaced_by(one.workload, one.nominal)}


def _readers(
    connection: Connection, store: EntityStore, replaced: Collection[FeedInstance], now: datetime
) -> Iterator[tuple[tuple[str, str, datetime], Workload]]:
    """For windows of ``latest`` and ``future``, only instances that have read them."""
    by_feed: dict[tuple[str, str], list[datetime]] = {}
    for cluster, feed, instance in replaced:
        by_feed.setdefault((cluster, feed), []).append(instance)
    for workload in store.workloads:
        for declared in workload.inputs:
            instances = by_feed.get((workload.reads_on, declared.feed), ())
            for nominal in _nominals(connection, workload, declared, instances):
                if workload.due(nominal) <= now:
                    yield (workload.name, workload.cluster, nominal), workload


def _nominals(
    connection: Connection, workload: Workload, declared: Input, instances: Collection[datetime]
) -> Iterator[datetime]:
    if not instances:
        return
    if not declared.is_of_times:
        inputs = {(workload.cluster, workload.name, declared.name)}
        keys = [(workload.reads_on, declared.feed, instance) for instance in instances]
        yield from (nominal for _, _, nominal in late_readers(connection, inputs, keys))
        return
    timeline = feed_timeline(workload.feeds[declared.feed], workload.cluster)
    for instance in instances:
        try:
            yield from consumers(declared, workload.timeline, timeline, workload.timezone, instance)
        except ExpressionError:  # a window lies beyond the calendar: there is no such instance
            continue
