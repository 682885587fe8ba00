"""When the instances of a run are prepared: all of them before any runs, unless they need instances before them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeAlias

from falcon_assets.errors import FalconError, MissingInputsError
from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration.runs.instance_work import Done, InstanceWork, Prepared, Session
from falcon_assets.orchestration.runs.planned_inputs import Evicted
from falcon_assets.planning.instances.instance_record import LateChange

Asked: TypeAlias = "Mapping[datetime, tuple[LateChange, ...] | None]"
"""Instances in the order in which they run, with the changes for which they run again; None: not for late data."""
Preparation: TypeAlias = Callable[[], Prepared]
"""Asked when the turn of an instance has come; raises what :meth:`InstanceWork.prepare` does."""


def ahead(
    work: InstanceWork, asked: Asked, evicted: Evicted
) -> tuple[dict[datetime, Preparation], dict[datetime, FalconError]]:
    """The instances that can run, and why the others cannot. No Spark is started for it."""
    ready: dict[datetime, Preparation] = {}
    failures: dict[datetime, FalconError] = {}
    for nominal, late in asked.items():
        try:
            ready[nominal] = partial(_same, work.prepare(nominal, late, evicted))
        except FalconError as error:
            failures[nominal] = error
    return ready, failures


def in_turn(work: InstanceWork, asked: Asked, evicted: Evicted) -> dict[datetime, Preparation]:
    """All of them: whether one can run is known when those before it have; they are to run one after the other."""
    turns = _Turns(work)
    return {nominal: partial(turns.prepare, nominal, late, evicted) for nominal, late in asked.items()}


def _same(prepared: Prepared) -> Prepared:
    return prepared


class NotItsTurnError(FalconError):
    """An instance lacks inputs, and an earlier instance failed in the same run: it was not tried."""


@dataclass
class _Turns:
    """The work of a workload that reads its own outputs, and the first instance that failed."""

    work: InstanceWork
    failed: datetime | None = field(default=None, init=False)

    def prepare(self, nominal: datetime, late: tuple[LateChange, ...] | None, evicted: Evicted) -> Prepared:
        try:
            return _Watched(self.work.prepare(nominal, late, evicted), self)
        except FalconError as error:
            if isinstance(error, MissingInputsError) and self.failed is not None:
                raise NotItsTurnError(f"{format_instant(self.failed)} failed, and {error}") from None
            self.failed = self.failed or nominal
            raise


@dataclass(frozen=True)
class _Watched:
    ready: Prepared
    turns: _Turns

    @property
    def nominal(self) -> datetime:
        return self.ready.nominal

    def run(self, session: Session) -> Done:
        try:
            return self.ready.run(session)
        except BaseException:
            self.turns.failed = self.turns.failed or self.nominal
            raise
