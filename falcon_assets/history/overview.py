"""Numbers of rows and of instances in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, literal, select, union_all

from falcon_assets.history.tables import FOLD, METADATA, PROCESS_INSTANCES
from falcon_assets.planning.instance_record import InstanceState


@dataclass(frozen=True)
class Overview:
    """Numbers of rows and of instances in the ledger; instances by (process, cluster) and state, sorted by name.

    ``event_id`` is the latest folded event of Dagster's log; 0: none.
    """

    event_id: int
    rows: Mapping[str, int]
    instances: Mapping[tuple[str, str], Mapping[InstanceState, int]]


def overview(connection: Connection) -> Overview:
    counted = union_all(
        *(select(literal(name).label("name"), func.count()).select_from(table) for name, table in _TABLES.items())
    )
    rows = {row[0]: row[1] for row in connection.execute(counted)}
    table = PROCESS_INSTANCES.c
    key = (table.process, table.cluster)
    by_state = select(*key, table.state, func.count()).group_by(*key, table.state).order_by(*key)
    instances: dict[tuple[str, str], dict[InstanceState, int]] = {}
    for process, cluster, state, count in connection.execute(by_state):
        instances.setdefault((process, cluster), {})[InstanceState(state)] = count
    return Overview(folded_up_to(connection), {name: rows[name] for name in _TABLES}, instances)


def folded_up_to(connection: Connection) -> int:
    return connection.execute(select(FOLD.c.event_id)).scalar() or 0


_TABLES = {table.name: table for table in METADATA.tables.values()}
