"""Deliveries in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from falcon_assets.features.transfers.records import InstanceDelivered
from falcon_assets.history.database import upsert
from falcon_assets.history.events.event_log import Logged
from falcon_assets.history.tables import DELIVERIES
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.transfers import ExportWorkload


@dataclass(frozen=True)
class KnownDelivery:
    """A delivery of an instance; ``at`` is on the falcon clock."""

    process: str
    cluster: str
    nominal: datetime
    feed: str
    version: str
    datasource: str
    dataset: str
    execution: str
    rows: int
    at: datetime
    run_id: str | None

    def __str__(self) -> str:
        sent = f"{self.feed} {format_instant(self.nominal)} was sent to {self.dataset} of {self.datasource}"
        return f"{sent} on {format_instant(self.at)} (rows: {self.rows}, execution {self.execution})"


def fold_deliveries(connection: Connection, facts: Sequence[Logged]) -> None:
    rows = [
        {
            "process": fact.process,
            "cluster": fact.cluster,
            "nominal": fact.nominal,
            "event_id": one.event_id,
            "feed": fact.delivered_feed,
            "version": fact.sent_version,
            "datasource": fact.datasource,
            "dataset": fact.dataset,
            "execution": fact.execution,
            "rows": fact.rows,
            "at": fact.at,
            "run_id": one.run_id,
        }
        for one in facts
        if isinstance(fact := one.fact, InstanceDelivered)
    ]
    if rows:
        upsert(connection, DELIVERIES, rows)


def last_delivery(connection: Connection, workload: ExportWorkload, nominal: datetime) -> KnownDelivery | None:
    """The last one of an instance; None: there is none."""
    table = DELIVERIES.c
    own = (table.process == workload.name, table.cluster == workload.cluster, table.nominal == nominal)
    row = connection.execute(_ASKED.where(*own).order_by(table.event_id.desc()).limit(1)).first()
    return _delivery(row) if row else None


_ASKED = select(*(one for one in DELIVERIES.c if one.name != "event_id"))


def _delivery(row: Any) -> KnownDelivery:
    return KnownDelivery(**row._mapping)
