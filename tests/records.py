"""What events in Dagster's log say, as the records that they were written from."""

from __future__ import annotations

from typing import TypeVar

import dagster as dg

from falcon_assets.history.events.record import AssetEvent, Record, said_by

R = TypeVar("R", bound=Record)


def read_record(kind: type[R], event: AssetEvent | dg.EventLogRecord | None) -> R:
    """The record of that kind that an event says; ValueError where it says none."""
    if isinstance(event, dg.EventLogRecord):
        event = event.event_log_entry.asset_materialization or event.event_log_entry.asset_observation
    assert event is not None
    return kind.read(said_by(event))


def has_record(kind: type[Record], event: AssetEvent | dg.EventLogRecord | None) -> bool:
    """Whether an event says a record of that kind."""
    try:
        read_record(kind, event)
    except ValueError:
        return False
    return True
