"""Claims on instances: no two runs compute the same at once, and none computes what was assigned to another since."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from falcon_assets.history import queries
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.runs.run_locks import RunLocks, instance_lock, run_lock, session_of_run
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState


@dataclass
class InstanceClaims:
    """Claims of a run on its instances.

    A coordinator's run is for one attempt at each: where the ledger has assigned the attempt, or a later one, to
    another run, the instance is left alone. A run that a person started computes each instance as soon as no other run
    does. ``attempts`` is empty for those.
    """

    workload: str
    cluster: str
    run_id: str
    attempts: Mapping[datetime, int]
    ledger: Ledger
    locks: RunLocks
    say: Callable[[str], None]

    def others(self, nominals: Collection[datetime]) -> dict[datetime, str]:
        """Instances that are not for this run (any more), with reasons."""
        asked = [nominal for nominal in nominals if nominal in self.attempts]
        if not asked:
            return {}
        self.ledger.catch_up_on_others(self.run_id)
        with self.ledger.engine.connect() as connection:
            records = queries.some_records(connection, self.workload, self.cluster, asked)
        return {
            nominal: why
            for nominal, record in records.items()
            if (why := _why_not(record, self.run_id, self.attempts[nominal]))
        }

    def take(self, nominal: datetime, waiting: Callable[[], AbstractContextManager[None]] = nullcontext) -> str | None:
        """Waits for the instance's lock, and returns why it is not for this run (None: it is).

        ``waiting`` is entered while another run has it. Raises LockWaitError where the run was interrupted meanwhile,
        and one of DATABASE_ERRORS.
        """
        name = self._lock(nominal)
        if not self.locks.take(name):
            self.say(f"{self.workload} {format_instant(nominal)} waits: another run computes it")
            with waiting():
                self.locks.wait_for(name)
        # Since the run began another one may have had it, and commands may have taken it; and where the locks were
        # nobody's for a moment, this run may have been taken for dead.
        why = self.others([nominal]).get(nominal)
        if why is not None:
            self.release([nominal])
        return why

    def take_free(self, nominals: Collection[datetime]) -> dict[datetime, str | None]:
        """As :meth:`take`, for those that no other run computes: the rest is missing in what it returns."""
        taken = self.locks.take_free([self._lock(nominal) for nominal in nominals])
        free = [nominal for nominal in nominals if self._lock(nominal) in taken]
        others = self.others(free)
        self.release(others)
        return {nominal: others.get(nominal) for nominal in free}

    def why_lost(self, nominal: datetime) -> str | None:
        """Why the instance is not this run's any more; None: it is. Raises as :meth:`take`.

        A process that stood still, or had no database for long, may have been taken for dead meanwhile.
        """
        return None if self.locks.were_kept() else self.others([nominal]).get(nominal)

    def release(self, nominals: Collection[datetime]) -> None:
        """Call it after the results are recorded."""
        self.locks.release(*map(self._lock, nominals))

    def _lock(self, nominal: datetime) -> str:
        return instance_lock(self.workload, self.cluster, nominal)


def _why_not(record: InstanceRecord, run_id: str, attempt: int) -> str | None:
    if record.attempt < attempt:
        return None  # the ledger could not be brought up to date: nobody is known to have it
    own = record.queued_run == run_id or (record.run_id == run_id and record.state is InstanceState.RUNNING)
    if record.attempt == attempt and own:
        return None
    if record.run_id == run_id:
        return f"it is {record.state.value}: {record.reason or 'this run is over'}"
    other = record.run_id if record.queued_run in (None, run_id) else record.queued_run
    return f"it was given to the run {other}" if other else f"it is {record.state.value}: {record.reason}"


@contextmanager
def instance_claims(
    context: dg.AssetExecutionContext, ledger: Ledger, workload: str, cluster: str
) -> Iterator[InstanceClaims]:
    """Holds the run's lock in the context."""
    run = context.run
    attempts = dict(zip(run_tags.nominals_of(run.tags), run_tags.attempts_of(run.tags), strict=False))
    name = run_lock(run.run_id, workload, cluster)
    with RunLocks(ledger.url, name, session_of_run(run.run_id)) as locks:
        yield InstanceClaims(workload, cluster, run.run_id, attempts, ledger, locks, context.log.info)
