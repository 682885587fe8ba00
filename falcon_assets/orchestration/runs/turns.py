"""Whether a run may begin with its next instance: what people said since it was launched holds for that, too."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import func, select

from falcon_assets.ledger.entities.status import Status
from falcon_assets.ledger.tables import DEFINITION_VERSIONS, ENTITY_STATUS
from falcon_assets.orchestration.runs.instance_claims import InstanceClaims
from falcon_assets.planning.workloads.workload import Workload


@dataclass
class Turns:
    """Asks the ledger, of the instances that a coordinator gave to a run: one query for each.

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
        _, self._version = self._asked()

    def why_not(self, nominal: datetime) -> str | None:
        """Why the instance is left to a later run; None: it has its turn."""
        if nominal not in self.claims.attempts:
            return None
        what = f"{self.workload.entity.kind} {self.workload.entity.name}"
        status, newest = self._asked()
        if status == Status.SUSPENDED.value:
            return f"{what} is suspended"
        if newest != self._version:
            return f"{what} was changed since its run began: a later run looks at it anew"
        return None

    def _asked(self) -> tuple[str | None, int | None]:
        """The status of the entity and the number of its newest definition, as far as the ledger has them."""
        entity, status, versions = self.workload.entity, ENTITY_STATUS.c, DEFINITION_VERSIONS.c
        told = select(status.status).where(status.kind == entity.kind, status.name == entity.name).scalar_subquery()
        newest = select(func.max(versions.version)).where(versions.kind == entity.kind, versions.name == entity.name)
        with self.claims.ledger.engine.connect() as connection:
            row = connection.execute(select(told, newest.scalar_subquery())).one()
        return row[0], row[1]
