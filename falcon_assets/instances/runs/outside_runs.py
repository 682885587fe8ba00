"""Publishing an instance of a process outside of its runs, as a person asks for: a replay, or what was held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from falcon_assets.errors import StorageError
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.rules.replaced_outputs import replaced_by
from falcon_assets.instances.runs.run_locks import all_taken, instance_lock, place_lock
from falcon_assets.instances.store.newest_instances import newest_written, unrecorded_before
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.data_usage import FeedInstance
from falcon_assets.planning.input_windows import output_instance
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload


@contextmanager
def without_runs(ledger: Ledger, workload: Workload, nominal: datetime, then: str) -> Iterator[None]:
    """Keeps runs of the instance away; raises StorageError where one is at it, or it would replace a later snapshot.

    ``then`` is what to do when the run has ended.
    """
    where = (workload.name, workload.cluster)
    locks = [instance_lock(*where, nominal), *([place_lock(*where)] if workload.replaces_earlier else [])]
    when = f"{workload.name} {format_instant(nominal)}"
    with all_taken(ledger.engine, locks) as is_ours:
        if not is_ours:
            raise StorageError(f"{when} is being written by a run: let it end, or kill it, and {then} then")
        ledger.catch_up()
        with ledger.engine.connect() as connection:
            replaced = replaced_by(workload, nominal, newest_written(connection, [workload]))
        if replaced:
            raise StorageError(f"{when} cannot be published: {replaced}")
        yield


def earlier_snapshots(ledger: Ledger, workload: Workload, nominal: datetime) -> dict[FeedInstance, str | None]:
    """Earlier snapshot instances without data, which get that of ``nominal``, with their partition, if any."""
    if not workload.snapshots:
        return {}
    partitions, cluster = workload.partitions.timeline, workload.cluster
    found: dict[FeedInstance, str | None] = {}
    ledger.catch_up()
    with ledger.engine.connect() as connection:
        for output in workload.snapshots:
            feed = workload.feeds[output.feed]
            own = output_instance(output, feed_timeline(feed, cluster), nominal, workload.timezone)
            for one in unrecorded_before(connection, cluster, feed, own) if own else ():
                found[feed.name, one] = key_of(partitions, one) if partitions.contains(one) else None
    return found
