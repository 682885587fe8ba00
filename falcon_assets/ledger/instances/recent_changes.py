"""Which process instances ended since an event of Dagster's log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from falcon_assets.ledger.tables import PROCESS_INSTANCES
from falcon_assets.planning.instances.instance_record import InstanceState

_ENDS = (InstanceState.SUCCEEDED, InstanceState.FAILED, InstanceState.TIMED_OUT, InstanceState.KILLED)
_AT_ONCE = 10_000


@dataclass(frozen=True)
class Ended:
    """A process instance that came to an end; ``attempt`` counts the runs that it was given to."""

    process: str
    cluster: str
    nominal: datetime
    state: InstanceState
    reason: str
    attempt: int
    event_id: int


def newest_event(connection: Connection) -> int:
    """The latest event about any process instance; 0: none."""
    return int(connection.execute(select(func.coalesce(func.max(PROCESS_INSTANCES.c.event_id), 0))).scalar_one())


def ended_since(connection: Connection, event_id: int) -> list[Ended]:
    """The instances that ended after that event, oldest first; those that a run has in hand again are left out."""
    table = PROCESS_INSTANCES.c
    found = connection.execute(
        select(table.process, table.cluster, table.nominal, table.state, table.reason, table.attempt, table.event_id)
        .where(table.event_id > event_id, table.queued_run.is_(None), table.state.in_([one.value for one in _ENDS]))
        .order_by(table.event_id, table.process, table.cluster, table.nominal)
        .limit(_AT_ONCE)
    )
    return [Ended(*row[:3], InstanceState(row[3]), *row[4:]) for row in found]
