"""The body of an op: many instances of a workload in one run, each on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias

import dagster as dg
from pyspark.sql import SparkSession

from falcon_assets.base.cancellation import Cancellation
from falcon_assets.base.texts import recorded
from falcon_assets.compute.engines.computing.programs import stop_programs
from falcon_assets.compute.spark.failures import logged_stack
from falcon_assets.compute.spark.sessions import interrupt_sessions
from falcon_assets.errors import BeingWrittenError, FalconError, MissingInputsError, RootAwayError, UnreachableError
from falcon_assets.history import queries
from falcon_assets.history.dagster_internals.storage import DATABASE_ERRORS
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.mapping.partitions import instant_of_key, key_of
from falcon_assets.history.platform.interrupted_runs import interrupt, is_stopped
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.runs.commanded_stops import CommandedStops, Turns
from falcon_assets.instances.runs.instance_claims import InstanceClaims, instance_claims
from falcon_assets.instances.runs.instance_work import (
    Done,
    InstanceWork,
    NotItsTurnError,
    Preparation,
    Prepared,
    ahead,
    in_turn,
)
from falcon_assets.instances.runs.planned_inputs import Withdrawals
from falcon_assets.instances.runs.run_locks import LockWaitError, place_lock
from falcon_assets.instances.store import changed_inputs, reruns
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import BEING_WRITTEN, STORE_AWAY, InstanceState, LateChange
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class LeftAlone:
    """Not computed by this run: another run did, or a needed instance failed; ``waits``: it is left to a later run."""

    why: str
    waits: bool = False


@dataclass(frozen=True)
class StoppedInstance:
    """A command, which has recorded the new state, took the instance during its computation."""

    why: str


Outcome: TypeAlias = Done | Exception | LeftAlone | StoppedInstance | None
Started: TypeAlias = dict[datetime, bool]
Said: TypeAlias = "SimpleQueue[tuple[datetime, Outcome]]"


@dataclass(frozen=True)
class WorkloadExecution:
    workload: Workload
    clock: Callable[[], datetime]
    open_ledger: Callable[[dg.DagsterInstance], Ledger]
    work: Callable[[dg.AssetExecutionContext, InstanceClaims], InstanceWork]

    def run(self, context: dg.AssetExecutionContext, session: Callable[[], SparkSession]) -> None:
        """Runs every instance of the run's partitions, ``parallel`` at a time, and records each as it is published.

        Raises:
            dagster.Failure: some instances failed, or wait in a run by hand (the others are done); or all were stopped
                or wait: the run must not look successful.
        """
        ledger = self.open_ledger(context.instance)
        with instance_claims(context, ledger, self.workload.name, self.workload.cluster) as claims:
            if self.workload.snapshots:  # what other runs write is in the same place
                claims.locks.wait_for(place_lock(self.workload.name, self.workload.cluster))
            self._run(context, session, claims)

    def _run(
        self, context: dg.AssetExecutionContext, session: Callable[[], SparkSession], claims: InstanceClaims
    ) -> None:
        asked = self._nominals(context.partition_keys)
        others = claims.others(asked)
        for nominal, why in others.items():
            context.log.info(f"{self.workload.name} {format_instant(nominal)} is left alone: {why}")
        nominals = [nominal for nominal in asked if nominal not in others]
        work, evicted = self.work(context, claims), partial(self._evicted, claims.ledger)
        late = self._late(context, claims.ledger, nominals)
        wanted = {nominal: late.get(nominal) for nominal in nominals}
        at_once = self.workload.partitions.at_once
        slots = min(at_once, run_tags.slots_of(context.run.tags, at_once))
        failures: dict[datetime, str] = {}
        unready: dict[datetime, FalconError] = {}
        turns = Turns(self.workload, claims)
        if self.workload.own_feeds:
            ready, slots = in_turn(work, wanted, evicted), 1
        else:
            ready, unready = ahead(work, wanted, evicted)

        def check(nominal: datetime) -> object:
            return work.prepare(nominal, wanted[nominal], evicted)

        stopped: dict[datetime, str] = {}
        for nominal, error in unready.items():
            self._did_not(context, work, nominal, error, claims, failures, stopped, began=False)
        made: list[datetime] = []
        heard: Said = SimpleQueue()
        running: Started = {}
        try:
            with CommandedStops(claims, ready) as stops:
                for nominal, outcome in self._outcomes(ready, session, slots, heard, claims, stops, turns, check):
                    self._hear(context, work, nominal, outcome, running, failures, stopped, claims)
                    if outcome is not None:
                        claims.release(nominal)
                        made += [] if isinstance(outcome, LeftAlone | StoppedInstance | Exception) else [nominal]
        except BaseException as error:
            if not isinstance(error, Exception):
                interrupt(context.instance, context.run_id, "the process of the run was asked to end")
            self._broken_off(context, work, heard, running, failures, claims)
            raise
        if made:  # once, for whoever reads what the daemon prints
            context.log.info(
                f"{self.workload.name} on {self.workload.cluster} {run_tags.in_words(sorted(made))} succeeded"
            )
        for nominal, reason in sorted(failures.items()):
            context.log.error(f"{self.workload.name} {format_instant(nominal)}: {reason}")
        if failures:
            raise dg.Failure(description=_summary(self.workload.name, failures, len(nominals)))
        if stopped and len(stopped) == len(nominals):
            raise dg.Failure(description=_summary(self.workload.name, stopped, len(nominals), "not computed"))

    def _nominals(self, keys: Sequence[str]) -> list[datetime]:
        instants = [instant for key in keys if (instant := instant_of_key(key)) is not None]
        nominals = [self.workload.partitions.nominal_of(instant) for instant in instants]
        if self.workload.shares_assets:
            nominals = [one for one in nominals if self.workload.timeline.contains(one)]
        needs_order = self.workload.own_feeds or self.workload.snapshots
        return sorted(nominals, reverse=self.workload.order != "FIFO" and not needs_order)

    def _late(
        self, context: dg.AssetExecutionContext, ledger: Ledger, nominals: Sequence[datetime]
    ) -> Mapping[datetime, tuple[LateChange, ...]]:
        """Changes for late reruns (else empty), with publications of awaited reruns that are not in the request yet."""
        if run_tags.LATE not in context.run.tags:
            return {}
        name, cluster, late = self.workload.name, self.workload.cluster, self.workload.late
        watched = {(cluster, name, one.input) for one in late.inputs} if late else set()
        with ledger.engine.connect() as connection:
            found = reruns.requests_of(connection, name, cluster, nominals)
            asked = [nominal for nominal, request in found.items() if request.late_workflow]
            newer = changed_inputs.republished(connection, watched, name, cluster, found.keys() - set(asked))
            newer |= changed_inputs.changed_since_read(connection, watched, name, cluster, asked)
        return {nominal: _together(request.changes, newer.get(nominal, ())) for nominal, request in found.items()}

    def _evicted(self, ledger: Ledger, feed: str, instances: Sequence[datetime]) -> Mapping[datetime, datetime]:
        key = (self.workload.reads_on, feed)
        with ledger.engine.connect() as connection:
            found = queries.evicted(connection, {key: (min(instances), max(instances))}).get(key, {})
        return {instance: found[instance] for instance in instances if instance in found}

    def _outcomes(
        self,
        ready: Mapping[datetime, Preparation],
        session: Callable[[], SparkSession],
        slots: int,
        said: Said,
        claims: InstanceClaims,
        stops: CommandedStops,
        turns: Turns,
        check: Callable[[datetime], object],
    ) -> Iterator[tuple[datetime, Outcome]]:
        """Yields starts (None), results and failures on arrival; starts nothing once the run is interrupted."""

        def work(nominal: datetime, prepare: Preparation) -> None:
            try:
                if (why := turns.why_not(nominal)) is not None:
                    said.put((nominal, LeftAlone(why, waits=True)))
                    return
                why = claims.take(nominal) or stops.why_not(nominal)
                if why is not None:
                    said.put((nominal, LeftAlone(why)))
                    return
                prepared = prepare()
                said.put((nominal, None))
                with stops.computing(nominal) as cancellation:
                    try:
                        outcome = _result(prepared, session, cancellation)
                    except FalconError:
                        _require_inputs(check, nominal)
                        raise
                    said.put((nominal, outcome))
            except NotItsTurnError as error:
                said.put((nominal, LeftAlone(str(error))))
            except Exception as error:
                said.put((nominal, error))
            except BaseException as error:  # nobody else hears of it, and the run would wait for its instance for ever
                said.put((nominal, RuntimeError(f"{type(error).__name__}: {error}")))
                raise

        with ThreadPoolExecutor(max_workers=slots, thread_name_prefix=self.workload.name) as pool:
            for nominal, prepare in ready.items():
                pool.submit(work, nominal, prepare)
            unfinished = len(ready)
            try:
                while unfinished:
                    nominal, outcome = said.get()
                    unfinished -= outcome is not None
                    yield nominal, outcome
            except BaseException:
                # The run is interrupted: what waits is dropped, and programs do not outlive it.
                pool.shutdown(wait=False, cancel_futures=True)
                claims.locks.stop_waiting()
                interrupt_sessions()
                stop_programs()
                raise

    def _hear(
        self,
        context: dg.AssetExecutionContext,
        work: InstanceWork,
        nominal: datetime,
        outcome: Outcome,
        running: Started,
        failures: dict[datetime, str],
        stopped: dict[datetime, str],
        claims: InstanceClaims,
    ) -> None:
        if outcome is None:
            running[nominal] = False
            self._record_state(context, work, nominal, InstanceState.RUNNING)
            running[nominal] = True
            return
        is_started = nominal in running
        is_recorded = running.pop(nominal, False)
        if isinstance(outcome, LeftAlone):
            context.log.info(f"{self.workload.name} {format_instant(nominal)} is left alone: {outcome.why}")
            if outcome.waits:
                stopped[nominal] = outcome.why
                self._record_state(context, work, nominal, InstanceState.WAITING, outcome.why)
            return
        if isinstance(outcome, StoppedInstance):
            stopped[nominal] = outcome.why
            context.log.warning(f"{self.workload.name} {format_instant(nominal)} was stopped: {outcome.why}")
            return
        if not isinstance(outcome, Exception):
            if not is_recorded:  # the interruption came before its start was written down
                self._record_state(context, work, nominal, InstanceState.RUNNING)
            self._record(context, work, outcome)
            return
        self._did_not(context, work, nominal, outcome, claims, failures, stopped, began=is_started)

    def _did_not(
        self,
        context: dg.AssetExecutionContext,
        work: InstanceWork,
        nominal: datetime,
        error: Exception,
        claims: InstanceClaims,
        failures: dict[datetime, str],
        stopped: dict[datetime, str],
        *,
        began: bool,
    ) -> None:
        """Records that an instance failed; or that it waits, where the cause is outside of it.

        Missing inputs are recorded as such. A store that fails only after the instance began may do so because of it.
        """
        reason, name = recorded(str(error) or type(error).__name__), f"{self.workload.name} {format_instant(nominal)}"
        by_hand = nominal not in claims.attempts
        is_away = isinstance(error, RootAwayError) or (isinstance(error, UnreachableError) and not began)
        is_taken = isinstance(error, BeingWrittenError)
        waits = isinstance(error, (LockWaitError, *DATABASE_ERRORS)) or ((is_away or is_taken) and not by_hand)
        if isinstance(error, MissingInputsError) and error.may_come:
            withdrawals = Withdrawals(claims.ledger, self.workload, partial(work.is_there, nominal))
            waits = withdrawals.record(nominal, error.lacking, self.clock())
        if isinstance(error, DATABASE_ERRORS):
            context.log.warning(f"{name} waits for a later run: the database went away\n{logged_stack(error)}")
            reason = "the database went away while it ran"
        if waits:
            context.log.warning(f"{name} was not computed: {reason}")
            (failures if by_hand else stopped)[nominal] = reason  # whoever waits for a run by hand is to hear of it
            kind = STORE_AWAY if is_away else BEING_WRITTEN
            data = {"kind": kind, "text": reason} if is_away or is_taken else None
            self._record_state(context, work, nominal, InstanceState.WAITING, reason, data)
            return
        failures[nominal] = reason
        if not isinstance(error, FalconError):
            # Not foreseen: whoever mends it needs the traceback, and the other instances need not suffer.
            context.log.error(f"{name}: {logged_stack(error)}")
        self._record_state(context, work, nominal, InstanceState.FAILED, reason)

    def _broken_off(
        self,
        context: dg.AssetExecutionContext,
        work: InstanceWork,
        said: Said,
        running: Started,
        failures: dict[datetime, str],
        claims: InstanceClaims,
    ) -> None:
        """Records how the interruption left every instance: those that were published nevertheless are done."""
        while not said.empty():
            nominal, outcome = said.get()
            if not (outcome is None or isinstance(outcome, LeftAlone | StoppedInstance | Exception)):
                self._hear(context, work, nominal, outcome, running, failures, {}, claims)
        if is_stopped(context.instance.get_run_by_id(context.run_id)):
            return  # and with it its instances: the ledger knows from the end of the run
        for nominal in sorted(running):
            self._record_state(context, work, nominal, InstanceState.WAITING, "its run was interrupted")

    def _record(self, context: dg.AssetExecutionContext, work: InstanceWork, done: Done) -> None:
        definition = work.definition(done.nominal)
        for event in done.events(self._partition(done.nominal), self.clock(), definition):
            context.log_event(event)

    def _record_state(
        self,
        context: dg.AssetExecutionContext,
        work: InstanceWork,
        nominal: datetime,
        state: InstanceState,
        reason: str = "",
        data: dict[str, Any] | None = None,
    ) -> None:
        key = names.workload_keys(self.workload)[0]
        instance = (self.workload.name, self.workload.cluster, nominal)
        definition = work.definition(nominal)
        changed = InstanceChanged(*instance, state, self.clock(), reason, reason_data=data, definition=definition)
        context.log_event(changed.event(key, self._partition(nominal)))

    def _partition(self, nominal: datetime) -> str:
        return key_of(self.workload.partitions.timeline, self.workload.partitions.partition_of(nominal))


def _together(asked: Iterable[LateChange], newer: Iterable[LateChange]) -> tuple[LateChange, ...]:
    """For each input instance, the newer change."""
    return tuple({(one.input, one.feed, one.instance): one for one in (*asked, *newer)}.values())


def _require_inputs(check: Callable[[datetime], object], nominal: datetime) -> None:
    """Raises MissingInputsError where a failed instance's inputs were withdrawn meanwhile: it waits for them."""
    try:
        check(nominal)
    except MissingInputsError as error:
        if error.may_come:
            raise
    except FalconError:
        return  # what it failed of says more


def _result(
    prepared: Prepared, session: Callable[[], SparkSession], cancellation: Cancellation
) -> Done | StoppedInstance:
    """All errors after a cancellation are due to it."""
    try:
        return prepared.run(session)
    except Exception:
        if cancellation.why is None:
            raise
        return StoppedInstance(cancellation.why)


def _summary(workload: str, reasons: Mapping[datetime, str], total: int, ended: str = "failed") -> str:
    lines = [f"{format_instant(nominal)}: {reason}" for nominal, reason in sorted(reasons.items())]
    return "\n".join([f"{len(reasons)} of {total} instance(s) of {workload} {ended}:", *lines])
