"""Input instances that the ledger has for available, and that are not there when they are to be read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from falcon_assets.events.event_log import observation
from falcon_assets.events.feed_instances import FeedInstanceWithdrawn
from falcon_assets.ledger import queries
from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration.mapping import asset_keys as names
from falcon_assets.orchestration.mapping.partitions import key_of
from falcon_assets.orchestration.platform.open_ledger import Ledger
from falcon_assets.planning.time.timeline import feed_timeline
from falcon_assets.planning.workloads.workload import Workload


def record_withdrawn(ledger: Ledger, workload: Workload, lacking: Sequence[tuple[str, datetime]], at: datetime) -> None:
    """Records of those of the instances that are not there, by feed and time, that were available.

    They are waited for, and searched for, as those that never came. Nobody says it twice.
    """
    cluster = workload.reads_on
    ledger.catch_up()
    with ledger.engine.connect() as connection:
        instances: dict[str, list[datetime]] = {}
        for name, instance in lacking:
            instances.setdefault(name, []).append(instance)
        spans = {(cluster, name): (min(own), max(own)) for name, own in instances.items()}
        there = queries.available(connection, spans)
    for name, instance in lacking:
        if instance not in there.get((cluster, name), ()):
            continue
        feed = workload.feeds[name]
        gone = FeedInstanceWithdrawn(cluster, name, instance, workload.name, at)
        said = f"{name} {format_instant(instance)} is not there any more: {workload.name} was to read it"
        partition = key_of(feed_timeline(feed, cluster), instance)
        event = observation(names.asset_key(cluster, name), partition, gone, description=said)
        ledger.instance.report_runless_asset_event(event)
