"""Producers of missing inputs: instances do not give up what is being made, or is about to be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from falcon_assets.errors import FalconError
from falcon_assets.instances.rules.readiness import MissingInput
from falcon_assets.planning.input_windows import input_instances
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.retries import opens_at, settled
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.writers import makers

if TYPE_CHECKING:
    from falcon_assets.instances.rules.situation import Situation


Producers: TypeAlias = "Callable[[str], Sequence[Situation]]"
"""By feed: the situations of its producers, where a workload reads it."""

_DEEPEST = 50
"""Steps up the graph."""


def no_producers(feed: str) -> Sequence[Situation]:
    return ()


def never(thing: object) -> None: ...


def settled_since(at: Situation, nominal: datetime, lacking: MissingInput) -> datetime | None:
    """When the last producer ended without the input (``nominal`` if not known); None: one may still make it."""
    latest = nominal
    for producer, made_by in _makers(at, nominal, lacking):
        record = producer.records.get(made_by)
        if _goes_on(producer, made_by, record):
            return None
        end = producer.ended(made_by) if record is None else None
        ended = record.ended if record else end and end[0]
        latest = max(latest, ended or latest)
    return latest


def skipped(at: Situation, nominal: datetime) -> MissingInput | None:
    """The first missing input that its producers skipped; raises as :meth:`.Readiness.missing`."""
    for lacking in at.readiness.missing(nominal, at.available):
        if isinstance(lacking.instance, datetime):
            made = [_is_skipped(*one) for one in _makers(at, nominal, lacking)]
            if made and all(made):
                return lacking
    return None


def _is_skipped(producer: Situation, nominal: datetime) -> bool:
    if nominal in producer.requests:
        return False
    record, end = producer.records.get(nominal), producer.ended(nominal)
    return InstanceState.SKIPPED in (record.state if record else None, end[1] if end and not record else None)


def being_made(at: Situation, nominal: datetime) -> MissingInput | None:
    """The first missing instance of an optional input that is being made, or about to be.

    Only windows of times count, and no producers that wait themselves, for data from outside or a retry. Raises
    UnknownEntityError and ExpressionError as :meth:`.Readiness.missing`.
    """
    workload = at.workload
    for declared in workload.inputs:
        if not (declared.optional and declared.is_of_times) or declared.feed in workload.own_feeds:
            continue
        if not at.producers(declared.feed):
            continue
        there = at.available.get(declared.feed, ())
        line = feed_timeline(workload.feeds[declared.feed], workload.reads_on)
        for instance in input_instances(declared, line, nominal, workload.timezone):
            if instance not in there and instance not in at.evicted.get(declared.feed, {}):
                lacking = MissingInput(declared.name, declared.feed, instance)
                if _is_made(at, nominal, lacking, set(), _DEEPEST):
                    return lacking
    return None


def _is_made(
    at: Situation, nominal: datetime, lacking: MissingInput, seen: Collection[tuple[str, datetime]], left: int
) -> bool:
    """Whether a producer runs, or lacks only inputs that are about to be made."""
    for producer, made_by in _makers(at, nominal, lacking):
        record = producer.records.get(made_by)
        if record is not None and record.in_flight:
            return True
        key = (producer.workload.name, made_by)
        if left and key not in seen and _may_start(producer, made_by, record):
            missing = producer.readiness.missing(made_by, producer.available)
            if all(_is_made(producer, made_by, one, {*seen, key}, left - 1) for one in missing):
                return True
    return False


def _may_start(producer: Situation, nominal: datetime, record: InstanceRecord | None) -> bool:
    """Whether only missing inputs can hold it back."""
    if producer.since is None or (producer.until is not None and nominal > producer.until):
        return False
    if producer.workload.due(nominal) > producer.now or not _goes_on(producer, nominal, record):
        return False
    if record is None or nominal in producer.requests:
        return True
    opens = opens_at(record, producer.workload.retry)
    return record.state is not InstanceState.SUSPENDED and (opens is None or opens <= producer.now)


def _makers(at: Situation, nominal: datetime, lacking: MissingInput) -> Iterator[tuple[Situation, datetime]]:
    """For windows of ``latest`` and ``future``, all producers due until then."""
    for producer in at.producers(lacking.feed):
        if producer.workload.name == at.workload.name and producer.workload.cluster == at.workload.cluster:
            continue  # those wait for their turn: see OwnChain
        if isinstance(lacking.instance, datetime):
            try:
                found = makers([producer.workload], lacking.feed, producer.workload.cluster, lacking.instance)
            except FalconError:  # it is said of the maker itself
                continue
            yield from ((producer, made_by) for _, made_by in found)
            continue
        last = min(nominal, producer.now)
        open_ones = producer.timeline.indexes(producer.timeline.start, last)
        for index in range(max(producer.first_open, open_ones.start), open_ones.stop):
            yield producer, producer.timeline.instance(index)


def _goes_on(producer: Situation, nominal: datetime, record: InstanceRecord | None) -> bool:
    """Whether it may still succeed without a request: it runs, waits or is suspended."""
    if record is not None and record.in_flight:
        return True
    if producer.since is None and not producer.is_suspended:
        return False
    if nominal in producer.requests:
        return True
    if record is not None:
        return not settled(record, producer.workload.retry)
    return producer.timeline.index_at_or_before(nominal) >= producer.first_open
