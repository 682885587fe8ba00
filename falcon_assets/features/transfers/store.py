"""Imports in the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from sqlalchemy import Connection, select

from falcon_assets.features.transfers.records import Transferred
from falcon_assets.history.database import upsert
from falcon_assets.history.events.event_log import Logged
from falcon_assets.history.events.record import Record
from falcon_assets.history.tables.transfers import TRANSFERS
from falcon_assets.planning.transfers import ImportWorkload
from falcon_assets.planning.workloads import Workload


def fold_transfers(connection: Connection, facts: Sequence[Logged]) -> None:
    rows = {}
    for one in facts:
        if isinstance(fact := one.fact, Transferred):
            said = asdict(fact)
            del said["transferred"]
            said["source_columns"] = dict(fact.source_columns)
            rows[fact.process, fact.cluster, fact.nominal] = {**said, "event_id": one.event_id}
    if rows:
        upsert(connection, TRANSFERS, [*rows.values()])


@dataclass(frozen=True)
class ChangesRead:
    """How far the imports around an instance have come.

    Attributes:
        low: The high watermark of the newest earlier instance; None: there is none, it is read from the beginning.
        upto: Where the next instance that was imported went on; None: there is none, so it is free.
        columns: Name and type of those of the newest instance that was imported; empty: there is none.
    """

    low: str | None = None
    upto: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)


def changes_read(connection: Connection, process: str, cluster: str, nominal: datetime) -> ChangesRead:
    """Returns what is known of the imports before and after an instance."""
    table = TRANSFERS.c
    own = (table.process == process, table.cluster == cluster)
    marked = (*own, table.high_watermark.is_not(None))
    before, after, last = (
        select(what).where(*which).order_by(order).limit(1)
        for what, which, order in (
            (table.high_watermark, (*marked, table.nominal < nominal), table.nominal.desc()),
            (table.low_watermark, (*marked, table.nominal > nominal), table.nominal),
            (table.source_columns, own, table.nominal.desc()),
        )
    )
    return ChangesRead(connection.scalar(before), connection.scalar(after), connection.scalar(last) or {})


def why_outdated(connection: Connection, workload: Workload, fact: Record) -> str | None:
    """Why changes that were held must not be published any more: other instances hold them; None: they may.

    Those that are merged by key are in no other instance, as the next one waits for them.
    """
    is_about = isinstance(workload, ImportWorkload) and workload.goes_on and not workload.declared.key
    if not is_about or not isinstance(fact, Transferred):
        return None
    known = changes_read(connection, fact.process, fact.cluster, fact.nominal)
    if known.low not in (None, fact.low_watermark):
        which = "an earlier"
    elif known.upto not in (None, fact.high_watermark):
        which = "a later"
    else:
        return None
    return f"{which} instance has read these changes since, and they would be there twice"
