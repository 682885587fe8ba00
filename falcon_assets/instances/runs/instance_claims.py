"""Claims on instances: no two runs compute the same at once, and no run what was given to another since."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
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
    """What a run may compute.

    A run that a coordinator made is for one attempt at each of its instances: where the ledger says that another run
    was given the attempt, or a later one, it leaves the instance alone. A run that a person started computes what it
    was started for, as soon as nobody else does.

    Attributes:
        workload: The name of the workload.
        cluster: Where it is computed.
        run_id: The run.
        attempts: Which attempt the run is, by instance; none where a person started it.
        ledger: Says who was given what.
        locks: Those of the run.
        say: Told about what is waited for.
    """

    workload: str
    cluster: str
    run_id: str
    attempts: Mapping[datetime, int]
    ledger: Ledger
    locks: RunLocks
    say: Callable[[str], None]

    def others(self, nominals: Collection[datetime]) -> dict[datetime, str]:
        """Those of the instances that are not for this run (any more), and why not."""
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

    def take(self, nominal: datetime) -> str | None:
        """Makes the instance this run's own, once nobody else computes it; why it cannot be, where it cannot.

        Raises:
            LockWaitError: the run was interrupted meanwhile.
            DATABASE_ERRORS: the database is away.
        """
        name = self._lock(nominal)
        if not self.locks.take(name):
            self.say(f"{self.workload} {format_instant(nominal)} waits: another run computes it")
            self.locks.wait_for(name)
        # Since the run began another one may have had it, and commands may have taken it; and where the locks were
        # nobody's for a moment, this run may have been taken for dead.
        why = self.others([nominal]).get(nominal)
        if why is not None:
            self.release(nominal)
        return why

    def why_lost(self, nominal: datetime) -> str | None:
        """Why the instance that this run took is not its own any more; None: it still is.

        A process that stood still, or had no database for long, may have been taken for dead meanwhile.

        Raises:
            LockWaitError: the run was interrupted meanwhile, or the database stays away.
            DATABASE_ERRORS: the database is away.
        """
        return None if self.locks.were_kept() else self.others([nominal]).get(nominal)

    def release(self, nominal: datetime) -> None:
        """The instance is over, and recorded."""
        self.locks.release(self._lock(nominal))

    def _lock(self, nominal: datetime) -> str:
        return instance_lock(self.workload, self.cluster, nominal)


def _why_not(record: InstanceRecord, run_id: str, attempt: int) -> str | None:
    """Why the instance is not for that attempt of the run; None: it is."""
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
    """The claims of a run, which has the run's lock meanwhile."""
    run = context.run
    attempts = dict(zip(run_tags.nominals_of(run.tags), run_tags.attempts_of(run.tags), strict=False))
    name = run_lock(run.run_id, workload, cluster)
    with RunLocks(ledger.url, name, session_of_run(run.run_id)) as locks:
        yield InstanceClaims(workload, cluster, run.run_id, attempts, ledger, locks, context.log.info)
