"""Hooks of imports and exports: their records, and the fold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from falcon_assets.history.events.event_log import Logged
    from falcon_assets.history.events.instance_event import InstanceEvent
    from falcon_assets.history.events.record import Record
    from falcon_assets.planning.workloads import Workload


@hookimpl
def records() -> Collection[type[Record]]:
    from falcon_assets.features.transfers.records import InstanceDelivered, Transferred

    return (Transferred, InstanceDelivered)


@hookimpl
def fold(connection: Connection, facts: Sequence[Logged]) -> Sequence[InstanceEvent]:
    from falcon_assets.features.transfers.deliveries import fold_deliveries
    from falcon_assets.features.transfers.store import fold_transfers

    fold_transfers(connection, facts)
    fold_deliveries(connection, facts)
    return ()


@hookimpl
def outdated_fact(connection: Connection, workload: Workload, fact: Record) -> str | None:
    from falcon_assets.features.transfers.store import why_outdated

    return why_outdated(connection, workload, fact)
