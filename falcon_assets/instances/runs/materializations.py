"""Events of a published instance in Dagster's history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

import dagster as dg

from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.events.record import Record
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.hooks import InspectedOutput
from falcon_assets.instances.runs.instance_result import InstanceResult
from falcon_assets.planning.data_usage import FeedInstance
from falcon_assets.planning.instance_record import InstanceState

Earlier: TypeAlias = Mapping[FeedInstance, str | None]
"""Earlier snapshot instances with the same data, with their partitions, if any."""
Recorded: TypeAlias = tuple[FeedInstanceAvailable, InspectedOutput | None]


def materializations(
    result: InstanceResult,
    process: str,
    cluster: str,
    partition: str,
    at: datetime,
    definition: int | None,
    earlier: Earlier | None = None,
    effect: dg.AssetKey | None = None,
) -> Iterator[dg.AssetMaterialization | dg.AssetCheckEvaluation]:
    """``effect`` is the asset of a workload without outputs, where it does not have its name."""
    state, inputs, late = InstanceState.SUCCEEDED, result.inputs, result.late
    succeeded = InstanceChanged(
        process, cluster, result.nominal, state, at, inputs=inputs, late=late, definition=definition
    )
    published = [(result.available(one, process, cluster, at, definition), one.inspected) for one in result.outputs]
    yield from events_of(published, succeeded, partition, result.work, earlier or {}, result.facts, effect)


def events_of(
    published: Sequence[Recorded],
    succeeded: InstanceChanged,
    partition: str,
    work: Sequence[Record],
    earlier: Earlier,
    facts: Sequence[Record] = (),
    effect: dg.AssetKey | None = None,
) -> Iterator[dg.AssetMaterialization | dg.AssetCheckEvaluation]:
    """One event per output (without any, one for the effect), on its own partition, with all that decisions need.

    The last records the success of the process instance, with the ``facts``. Before it are those of ``earlier``
    snapshot instances.
    """
    cluster = succeeded.cluster
    for one, _ in published:
        for (feed, instance), own in earlier.items():
            if feed == one.feed:
                same = replace(one, instance=instance)
                yield materialization(names.asset_key(cluster, feed), own or partition, same)
    keys = [names.asset_key(cluster, one.feed) for one, _ in published]
    records = [[one, *([found.record(one.version, succeeded.at)] if found else [])] for one, found in published]
    for key, said in zip(keys[:-1], records, strict=False):
        yield materialization(key, partition, *said, *work)
    for one, found in published:
        if found is not None:
            yield from found.evaluations(one.version)
    last = keys[-1] if keys else effect or names.asset_key(cluster, succeeded.process)
    yield materialization(last, partition, *(records[-1] if records else ()), succeeded, *facts, *work)
