"""Imports and exports in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from falcon_assets.features.transfers.records import Transferred
from falcon_assets.history.database import upsert
from falcon_assets.history.events.event_log import Logged
from falcon_assets.history.tables.transfers import TRANSFERS


def fold_transfers(connection: Connection, facts: Sequence[Logged]) -> None:
    rows = {}
    for one in facts:
        if isinstance(fact := one.fact, Transferred):
            said = asdict(fact)
            said["kind"] = said.pop("transferred")
            said["source_columns"] = dict(fact.source_columns)
            rows[fact.process, fact.cluster, fact.nominal] = {**said, "event_id": one.event_id}
    if rows:
        upsert(connection, TRANSFERS, [*rows.values()])


@dataclass(frozen=True)
class ChangesRead:
    """How far the imports of changes around an instance have come.

    Attributes:
        low: The high watermark of the newest earlier instance; None: there is none, it is read from the beginning.
        upto: The high watermark of the instance itself, where a later instance went on from there; None: it is free.
    """

    low: str | None
    upto: str | None


def watermarks_around(connection: Connection, process: str, cluster: str, nominal: datetime) -> ChangesRead:
    """Returns the watermarks for an instance of an import."""
    table = TRANSFERS.c
    own = (table.process == process, table.cluster == cluster, table.high_watermark.is_not(None))
    low = select(table.high_watermark).where(*own, table.nominal < nominal).order_by(table.nominal.desc()).limit(1)
    later = select(func.count()).select_from(TRANSFERS).where(*own, table.nominal > nominal)
    before = select(table.high_watermark).where(*own, table.nominal == nominal)
    is_fixed = bool(connection.scalar(later))
    return ChangesRead(connection.scalar(low), connection.scalar(before) if is_fixed else None)
