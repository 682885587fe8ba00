"""Instances of a feed that are due by now, and their writers."""

from __future__ import annotations

from datetime import datetime

from falcon_assets.catalog.store import EntityStore
from falcon_assets.model.feed import Feed
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.input_windows import nominal_of_output, output_instance
from falcon_assets.planning.replication import replicated_timeline
from falcon_assets.planning.timeline import Timeline, feed_timeline
from falcon_assets.planning.workloads import Workload


def due_of_feed(store: EntityStore, feed: Feed, cluster: str, now: datetime) -> tuple[Timeline, datetime]:
    """The instances of a feed on a cluster, and the time after which none of them is due yet.

    Landing instances are due at their time, copies after the delay, those that a process writes not before the first
    instance that writes them; where no process can write them any more, at their time too.
    """
    timeline, replications = feed_timeline(feed, cluster), store.replications_to(feed.name, cluster)
    if replications:
        delay = max(one.delay for one in replications)
        return replicated_timeline(feed, cluster) or timeline, now - delay
    for producer in store.producers(feed.name, cluster):
        nominal = producer.timeline.at_or_before(producer.last_due(now))
        if nominal == producer.timeline.last:
            break
        if nominal is None:
            return timeline, timeline.start - MICROSECOND
        output = next(one for one in producer.outputs if one.feed == feed.name)
        instance = output_instance(output, timeline, nominal, producer.timezone)
        return timeline, min(instance or now, now)
    return timeline, now


def writers_of(store: EntityStore, feed: Feed, cluster: str, instance: datetime) -> list[tuple[Workload, datetime]]:
    """Empty: the instance lands from outside."""
    timeline, found = feed_timeline(feed, cluster), list[tuple[Workload, datetime]]()
    for producer in store.producers(feed.name, cluster):
        output = next(one for one in producer.outputs if one.feed == feed.name)
        nominals = nominal_of_output(output, producer.timeline, timeline, producer.timezone, instance)
        found += [(producer, nominal) for nominal in nominals]
    replications = store.replications_to(feed.name, cluster)
    return found + [(one, instance) for one in replications if one.timeline.contains(instance)]


def due_at(store: EntityStore, feed: Feed, cluster: str, instance: datetime) -> datetime:
    writers = writers_of(store, feed, cluster, instance)
    return max([instance, *(workload.due(nominal) for workload, nominal in writers)])
