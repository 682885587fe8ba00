"""Events of this package: made from records, and read as records."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from falcon_assets.history.events.columns import columns_in
from falcon_assets.history.events.feed_instances import (
    FeedArchiveExpired,
    FeedInstanceAvailable,
    FeedInstanceEvicted,
    FeedInstanceWithdrawn,
    FeedVersionEvicted,
    PartitionPushed,
    PushRefused,
    RowsKept,
)
from falcon_assets.history.events.process_instances import CameTooLate, InstanceChanged, RunEnded, RunQueued
from falcon_assets.history.events.record import (
    AT,
    COLUMNS,
    DATA_VERSION_TAG,
    VERSION,
    AssetEvent,
    Record,
    for_people,
    said_by,
)
from falcon_assets.hooks import hooks

if TYPE_CHECKING:
    import dagster as dg


_Record = TypeVar("_Record", bound=Record)
Fact: TypeAlias = Record | RunQueued | RunEnded
"""Records are of the core, or of a feature."""

_MATERIALIZED = (FeedInstanceAvailable, InstanceChanged)
_OBSERVED = (
    FeedArchiveExpired,
    FeedInstanceEvicted,
    FeedInstanceWithdrawn,
    FeedVersionEvicted,
    CameTooLate,
    PushRefused,
    RowsKept,
    InstanceChanged,
)


@dataclass(frozen=True)
class Logged:
    """A fact in Dagster's event log; ``run_id`` None: logged by a daemon, a user or a program outside of runs."""

    event_id: int
    fact: Fact
    run_id: str | None = None


def materialization(
    key: dg.AssetKey, partition: str, *records: Record, description: str | None = None
) -> dg.AssetMaterialization:
    import dagster as dg  # noqa: PLC0415 - takes seconds, and commands that only read need none of it

    versions = [one.version for one in records if isinstance(one, FeedInstanceAvailable)]
    tags = {DATA_VERSION_TAG: versions[0]} if versions else None
    return dg.AssetMaterialization(key, description, _metadata(records), partition, tags)


def observation(
    key: dg.AssetKey, partition: str | None, *records: Record, description: str | None = None
) -> dg.AssetObservation:
    import dagster as dg  # noqa: PLC0415 - as above

    return dg.AssetObservation(key, description, _metadata(records), partition)


def _metadata(records: tuple[Record, ...]) -> dict[str, Any]:
    return for_people({key: value for record in records for key, value in record.metadata().items()})


def record_in(event: AssetEvent, kind: type[_Record]) -> _Record:
    """Returns a record of an event, whatever kind of event it is; raises ValueError where it is another one's."""
    return kind.read({**said_by(event), str(COLUMNS.alias): columns_in(event.metadata)})


@cache
def records_of_features() -> tuple[type[Record], ...]:
    return tuple(kind for kinds in hooks().records() for kind in kinds)


def asset_facts(event_id: int, event: AssetEvent, seen: datetime) -> tuple[Fact, ...]:
    """Returns the facts of an event about ``[cluster, feed]``; empty: it is about something else."""
    import dagster as dg  # noqa: PLC0415 - as above

    said = {AT.alias: seen, VERSION.alias: f"event-{event_id}", **said_by(event)}
    said[str(COLUMNS.alias)] = columns_in(event.metadata)
    is_materialized = isinstance(event, dg.AssetMaterialization)
    # Others may write about these assets, and whatever they like: what is not ours must not stop the fold.
    facts: tuple[Fact, ...] = ()
    with suppress(ValueError):
        kinds = _MATERIALIZED if is_materialized else _OBSERVED
        facts = tuple(kind.read(said) for kind in kinds if kind.key in said)
    if is_materialized and not facts:
        with suppress(ValueError):
            facts = (PartitionPushed.read(said),)
    for kind in records_of_features():
        with suppress(ValueError):
            facts = (*facts, *([kind.read(said)] if kind.key in said else ()))
    return facts
