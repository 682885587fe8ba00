"""Whether a run may begin with its next instance: what people said since it was launched holds for that, too."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, func, select

from falcon_assets.ledger.entities.status import Status
from falcon_assets.ledger.tables import DEFINITION_VERSIONS, ENTITY_STATUS
from falcon_assets.orchestration.runs.instance_claims import InstanceClaims
from falcon_assets.planning.workloads.workload import Workload


@dataclass
class Turns:
    """Asks the ledger, of the instances that a coordinator gave to a run.

    What a person runs by hand is not asked about: it was meant to run as it is.

    Attributes:
        workload: Whose instances.
        claims: Of the run.
    """

    workload: Workload
    claims: InstanceClaims
    _version: int | None = field(init=False)

    def __post_init__(self) -> None:
        """Remembers with which definition the run began."""
        with self.claims.ledger.engine.connect() as connection:
            self._version = self._newest(connection)

    def why_not(self, nominal: datetime) -> str | None:
        """Why the instance is left to a later run; None: it has its turn."""
        if nominal not in self.claims.attempts:
            return None
        entity = self.workload.entity
        own = (ENTITY_STATUS.c.kind == entity.kind, ENTITY_STATUS.c.name == entity.name)
        with self.claims.ledger.engine.connect() as connection:
            status = connection.execute(select(ENTITY_STATUS.c.status).where(*own)).scalar()
            newest = self._newest(connection)
        if status == Status.SUSPENDED.value:
            return f"{entity.kind} {entity.name} is suspended"
        if newest != self._version:
            return f"{entity.kind} {entity.name} was changed since its run began: a later run has the new definition"
        return None

    def _newest(self, connection: Connection) -> int | None:
        table, entity = DEFINITION_VERSIONS.c, self.workload.entity
        own = (table.kind == entity.kind, table.name == entity.name)
        return connection.execute(select(func.max(table.version)).where(*own)).scalar()
