"""When coordinators looked at workloads, and when what did not succeed came to an end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, select

from falcon_assets.ledger.database.upsert import upsert
from falcon_assets.ledger.tables import LOOKS, PROCESS_INSTANCES
from falcon_assets.planning.instances.instance_record import InstanceState
from falcon_assets.planning.rules.looks import Looks

_IN_VAIN = (InstanceState.FAILED, InstanceState.TIMED_OUT, InstanceState.KILLED, InstanceState.SKIPPED)


def looks_at(connection: Connection, cluster: str) -> dict[str, Looks]:
    """Workload -> when it was looked at, of those on a cluster that ever were."""
    table = LOOKS.c
    statement = select(table.process, table.last, table.woke, table.slept).where(table.cluster == cluster)
    return {row.process: Looks(row.last, row.woke, row.slept) for row in connection.execute(statement)}


def set_looks(connection: Connection, cluster: str, looks: Mapping[str, Looks]) -> None:
    """Remembers them."""
    rows = [{"process": process, "cluster": cluster, **vars(one)} for process, one in looks.items()]
    upsert(connection, LOOKS, rows)


def ended_since(connection: Connection, process: str, cluster: str, since: datetime) -> dict[datetime, datetime]:
    """Instance -> when it ended, of those that did not succeed and ended since then."""
    table = PROCESS_INSTANCES.c
    in_vain = table.state.in_([one.value for one in _IN_VAIN])
    own = (table.process == process, table.cluster == cluster, in_vain, table.ended >= since)
    return {row.nominal: row.ended for row in connection.execute(select(table.nominal, table.ended).where(*own))}
