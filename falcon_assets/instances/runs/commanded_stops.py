"""Stops instances that a command took from a run, within seconds; the run continues with the others."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Self

import sqlalchemy
from sqlalchemy import func, select

from falcon_assets.base.cancellation import Cancellation, cancellable
from falcon_assets.entities.status import Status
from falcon_assets.history import queries
from falcon_assets.history.tables import DEFINITION_VERSIONS, ENTITY_STATUS
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.workloads import Workload

_CHECK_SECONDS = 1.0
_HELD = (InstanceState.KILLED, InstanceState.SUSPENDED)


class CommandedStops:
    """Polls the ledger for all instances of a run, and cancels those that a command took from it; a context manager."""

    def __init__(self, claims: InstanceClaims, nominals: Collection[datetime]) -> None:
        self._claims = claims
        self._open = set(nominals)
        self._computing: dict[datetime, Cancellation] = {}
        self._taken: dict[datetime, str] = {}
        self._started: set[datetime] = set()
        self._before: Mapping[datetime, InstanceRecord] = {}
        self._mutex = threading.Lock()
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="commanded stops", daemon=True)

    def __enter__(self) -> Self:
        with suppress(sqlalchemy.exc.DBAPIError):
            self._before = self._records()
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._watcher.join(_CHECK_SECONDS)  # where the database is away it waits for that, and nobody else should

    def why_not(self, nominal: datetime) -> str | None:
        """None: the run may begin the instance."""
        with self._mutex:
            return self._taken.get(nominal)

    @contextmanager
    def computing(self, nominal: datetime) -> Iterator[Cancellation]:
        """Makes this thread's work cancellable; it does not publish where another run has the instance by now."""
        cancellation = Cancellation(partial(self._claims.why_lost, nominal))
        with self._mutex:
            self._computing[nominal] = cancellation
        try:
            with cancellable(cancellation):
                yield cancellation
        finally:
            with self._mutex:
                del self._computing[nominal]
                self._open.discard(nominal)

    def _watch(self) -> None:
        while not self._over.wait(_CHECK_SECONDS):
            with suppress(sqlalchemy.exc.DBAPIError):  # it is away: nobody can command anything either
                self._check()

    def _check(self) -> None:
        for nominal, record in self._records().items():
            why = self._why(nominal, record)
            if why is None:
                continue
            with self._mutex:
                self._taken[nominal] = why
                cancellation = self._computing.get(nominal)
            if cancellation is not None:
                cancellation.cancel(why)

    def _records(self) -> dict[datetime, InstanceRecord]:
        claims = self._claims
        with self._mutex:
            nominals = sorted(self._open)
        if not nominals:
            return {}
        with claims.ledger.engine.connect() as connection:
            return queries.some_records(connection, claims.workload, claims.cluster, nominals)

    def _why(self, nominal: datetime, record: InstanceRecord) -> str | None:
        is_ours = record.run_id == self._claims.run_id
        if is_ours and record.state is InstanceState.RUNNING:
            self._started.add(nominal)
            return None
        before = self._before.get(nominal)
        is_new = before is None or record.attempt > before.attempt
        if record.state in _HELD and (is_ours or is_new):
            return record.reason
        # It was resumed, or asked for again, before this run had noticed that it was to stop.
        if nominal in self._started and (record.queued_run or not is_ours or record.state is InstanceState.WAITING):
            return f"it is {record.state.value}: {record.reason}"
        return None


@dataclass
class Turns:
    """Lets a run leave instances to later ones after changes of the entity.

    Runs that a person started by hand are not affected.
    """

    workload: Workload
    claims: InstanceClaims
    _version: int | None = field(init=False)

    def __post_init__(self) -> None:
        _, self._version = self._asked()

    def why_not(self, nominals: Collection[datetime]) -> dict[datetime, str]:
        """Those that may not start, with reasons; one query for all."""
        asked = [nominal for nominal in nominals if nominal in self.claims.attempts]
        why = self._why_not() if asked else None
        return {} if why is None else dict.fromkeys(asked, why)

    def _why_not(self) -> str | None:
        what = f"{self.workload.entity.kind} {self.workload.entity.name}"
        status, newest = self._asked()
        if status == Status.SUSPENDED.value:
            return f"{what} is suspended"
        if newest != self._version:
            return f"{what} was changed after its run began: a later run checks it again"
        return None

    def _asked(self) -> tuple[str | None, int | None]:
        """The status of the entity and the number of its newest definition; None: not in the ledger."""
        entity, status, versions = self.workload.entity, ENTITY_STATUS.c, DEFINITION_VERSIONS.c
        stored = select(status.status).where(status.kind == entity.kind, status.name == entity.name).scalar_subquery()
        newest = select(func.max(versions.version)).where(versions.kind == entity.kind, versions.name == entity.name)
        with self.claims.ledger.engine.connect() as connection:
            row = connection.execute(select(stored, newest.scalar_subquery())).one()
        return row[0], row[1]
