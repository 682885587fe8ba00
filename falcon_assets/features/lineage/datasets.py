"""Datasets of datasources, which versions were made from, or were sent to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, literal, select

from falcon_assets.errors import count_of
from falcon_assets.history.database import rows_of
from falcon_assets.history.events.data_version import Version
from falcon_assets.history.tables import DATA_VERSIONS, DELIVERIES, TRANSFERS
from falcon_assets.model.instant import format_instant

_VERSION, _SENT, _TAKEN = DATA_VERSIONS.c, DELIVERIES.c, TRANSFERS.c


@dataclass(frozen=True, order=True)
class DatasetEdge:
    """An edge from a dataset to the version that an import made of it, or from a version to where it was sent.

    Attributes:
        number: That of the version, and ``version`` its id.
        dataset: The table, query, path or topic.
        execution: Identifies a delivery at its target; None: it was made from it.
        nominal: The instance of the import or export.
    """

    datasource: str
    dataset: str
    version: str
    number: int
    process: str
    cluster: str
    nominal: datetime
    at: datetime
    run: str | None
    rows: int | None
    execution: str | None = None

    is_relation = False

    @property
    def id(self) -> str:
        """Differs from the id of any version."""
        return f"dataset:{self.datasource}/{self.dataset}"

    @property
    def is_sent(self) -> bool:
        return self.execution is not None

    @property
    def source(self) -> str:
        return self.version if self.is_sent else self.id

    @property
    def target(self) -> str:
        return self.id if self.is_sent else self.version

    def as_node(self) -> dict[str, Any]:
        return {"id": self.id, "kind": "dataset", "datasource": self.datasource, "name": self.dataset}

    def as_edge(self) -> dict[str, Any]:
        made = {"process": self.process, "run": self.run, "declared": True, "at": self.at.isoformat()}
        sent = {"rows": self.rows, "execution": self.execution}
        return {"from": self.source, "to": self.target, **made, **sent}

    def __str__(self) -> str:
        rows = "" if self.rows is None else f", {count_of(self.rows, 'row')}"
        execution = f", execution {self.execution}" if self.execution else ""
        return f"{self.dataset} of {self.datasource}  {format_instant(self.at)}{rows}{execution}  (by {self.process})"


def sent_to(connection: Connection, versions: Collection[Version]) -> list[DatasetEdge]:
    """Returns the deliveries of versions, in their order."""
    same = (_SENT.feed == _VERSION.feed, _SENT.nominal == _VERSION.instance)
    where = and_(*same, _SENT.cluster == _VERSION.cluster, _SENT.version == _VERSION.version)
    given = rows_of(DATA_VERSIONS, {"id": [one.number for one in versions]})
    asked = select(DELIVERIES, _VERSION.id.label("number"))
    asked = asked.join_from(given, DATA_VERSIONS, _VERSION.id == given.c.id).join(DELIVERIES, where)
    ids = {one.number: one.id for one in versions}
    return [
        _edge(row, ids[row.number], row.execution) for row in connection.execute(asked.order_by(DELIVERIES.c.event_id))
    ]


def sent_by(connection: Connection, runs: Collection[str]) -> list[DatasetEdge]:
    """Returns the deliveries that runs of Dagster made, in their order; their versions have no number."""
    given = rows_of(DELIVERIES, {"run_id": [*runs]})
    asked = select(DELIVERIES, literal(0).label("number")).join(given, _SENT.run_id == given.c.run_id)
    rows = connection.execute(asked.order_by(DELIVERIES.c.event_id))
    return [_edge(row, row.version, row.execution) for row in rows]


def made_from(connection: Connection, versions: Collection[Version]) -> list[DatasetEdge]:
    """Returns what imports made versions from."""
    where = and_(*(_TAKEN[name] == _VERSION[name] for name in ("process", "cluster", "nominal")))
    given = rows_of(DATA_VERSIONS, {"id": [one.number for one in versions]})
    asked = select(TRANSFERS, _VERSION.id.label("number"), _VERSION.run_id)
    asked = asked.join_from(given, DATA_VERSIONS, _VERSION.id == given.c.id).join(TRANSFERS, where)
    ids = {one.number: one.id for one in versions}
    return [_edge(row, ids[row.number], None) for row in connection.execute(asked.order_by(_VERSION.id))]


def _edge(row: Any, version: str, execution: str | None) -> DatasetEdge:
    instance = (row.process, row.cluster, row.nominal, row.at)
    return DatasetEdge(row.datasource, row.dataset, version, row.number, *instance, row.run_id, row.rows, execution)
