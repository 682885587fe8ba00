"""What our events say about instances, as metadata: written by runs and collectors, read by the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import dagster as dg

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instances.instance_record import InstanceState, LateChange

DATA_VERSION_TAG = "dagster/data_version"
"""Dagster's tag for the data version of a materialization; its constant is not public, the tag is documented."""

PROCESS = "process"
NOMINAL_TIME = "nominal_time"
STATE = "state"
"""The state that a process instance came to with this event."""
AT = "at"
"""When, on the falcon clock."""
REASON = "reason"
LOOKED_BEFORE = "looked_before"
"""On what landed from outside: when its feed was looked at before, on the falcon clock; it came after that."""
SIGNATURE = "signature"
INSTANCE = "instance"
INPUTS = "inputs"
LATE = "late"
"""On what a late rerun published: which inputs had changed, from which version to which."""
TOO_LATE = "too_late"
"""The version of an input instance that came after its cut-off; nothing is run again for it."""
FEED = "feed"
EVICTED = "evicted"
"""What retention did with the instance: ``delete`` or ``archive``."""

PUSHED, PUSH = "pushed", "pushed_event"
"""On a collector's answer to a push: the partition as it was pushed, and the event that pushed it."""


def instance_state(
    key: dg.AssetKey,
    partition: str,
    process: str,
    nominal: datetime,
    state: InstanceState,
    at: datetime,
    reason: str = "",
) -> dg.AssetObservation:
    """A process instance came to a state: an observation on the partition of its first asset."""
    return dg.AssetObservation(
        asset_key=key,
        partition=partition,
        description=f"{process} {format_instant(nominal)}: {state.value}" + (f": {reason}" if reason else ""),
        # The UI shows it in this order.
        metadata=({STATE: state.value, REASON: reason} if reason else {}) | state_metadata(process, nominal, state, at),
    )


def too_late(
    key: dg.AssetKey, partition: str, process: str, nominal: datetime, change: LateChange, at: datetime, said: str
) -> dg.AssetObservation:
    """An input of a succeeded process instance changed after its cut-off: an observation on its first asset."""
    return dg.AssetObservation(
        asset_key=key,
        partition=partition,
        description=said,
        metadata={
            PROCESS: process,
            NOMINAL_TIME: format_instant(nominal),
            TOO_LATE: change.after,
            FEED: change.feed,
            INSTANCE: format_instant(change.instance),
            AT: at.isoformat(timespec="milliseconds"),
        },
    )


def state_metadata(process: str, nominal: datetime, state: InstanceState, at: datetime) -> dict[str, str]:
    """The same as a part of another event's metadata."""
    return {
        PROCESS: process,
        NOMINAL_TIME: format_instant(nominal),
        STATE: state.value,
        AT: at.isoformat(timespec="milliseconds"),
    }


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata without Dagster's types around the values."""
    return {key: getattr(value, "value", value) for key, value in metadata.items()}
