"""The body of an op: many instances of a workload in one run, each on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice

import dagster as dg

from falcon_assets.base.cancellation import Cancellation
from falcon_assets.base.texts import recorded
from falcon_assets.compute.spark.failures import logged_stack
from falcon_assets.errors import (
    BeingWrittenError,
    FalconError,
    HeldOutputError,
    MissingInputsError,
    RootAwayError,
    UnreachableError,
)
from falcon_assets.history import queries
from falcon_assets.history.dagster_internals.events import Batches, record_in_step
from falcon_assets.history.dagster_internals.storage import DATABASE_ERRORS
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.mapping.partitions import instant_of_key, key_of
from falcon_assets.history.platform.interrupted_runs import interrupt, is_stopped
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.instances.runs.claims_ahead import ClaimsAhead
from falcon_assets.instances.runs.commanded_stops import CommandedStops, Turns
from falcon_assets.instances.runs.executor_away import why_away
from falcon_assets.instances.runs.instance_claims import InstanceClaims, instance_claims
from falcon_assets.instances.runs.instance_work import Done, Event, InstanceWork, Prepared
from falcon_assets.instances.runs.outcomes import LeftAlone, Outcome, Outcomes, StoppedInstance
from falcon_assets.instances.runs.planned_inputs import Withdrawals
from falcon_assets.instances.runs.run_locks import LockWaitError, place_lock
from falcon_assets.instances.runs.together import Gathering, gathered
from falcon_assets.instances.store import changed_inputs, reruns
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import InstanceState, LateChange
from falcon_assets.planning.reasons import BeingWritten, ExecutorAway, HeldBack, Reason, StoreAway
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings


def run_workload(
    context: dg.AssetExecutionContext,
    workload: Workload,
    settings: Settings,
    work: Callable[[dg.AssetExecutionContext, InstanceClaims], InstanceWork],
) -> None:
    """Runs every instance of the run's partitions, ``parallel`` at a time, and records each as it is published.

    Raises:
        dagster.Failure: some instances failed, or wait in a run by hand (the others are done); or all were stopped or
            wait: the run must not look successful.
    """
    ledger = open_ledger(settings, context.instance)
    with instance_claims(context, ledger, workload.name, workload.cluster) as claims:
        # What other runs write is in the same place, or where this one begins.
        if workload.replaces_earlier or workload.goes_on:
            claims.locks.wait_for(place_lock(workload.name, workload.cluster))
        events = Batches(record_in_step(context.op_execution_context))
        WorkloadRun(workload, settings.now, context, claims, work(context, claims), events).run()


@dataclass
class WorkloadRun:
    """One run of a workload.

    Attributes:
        late: Instances of the run -> changes of late reruns; None: no late rerun.
        prepared: Instances that can run; empty where each is prepared in its turn.
        running: Started instances -> whether their start is recorded, or among ``events``.
        failures: Failed instances, with reasons.
        stopped: Instances that were stopped or wait, with reasons.
    """

    workload: Workload
    clock: Callable[[], datetime]
    context: dg.AssetExecutionContext
    claims: InstanceClaims
    work: InstanceWork
    events: Batches[Event]
    late: dict[datetime, tuple[LateChange, ...] | None] = field(default_factory=dict, init=False)
    prepared: dict[datetime, Prepared] = field(default_factory=dict, init=False)
    first_failed: datetime | None = field(default=None, init=False)
    running: dict[datetime, bool] = field(default_factory=dict, init=False)
    failures: dict[datetime, str] = field(default_factory=dict, init=False)
    stopped: dict[datetime, str] = field(default_factory=dict, init=False)
    outcomes: Outcomes = field(default_factory=Outcomes, init=False)

    def run(self) -> None:
        log, claims = self.context.log, self.claims
        asked = self._nominals(self.context.partition_keys)
        others = claims.others(asked)
        for nominal, why in others.items():
            log.info(f"{self._name(nominal)} is left alone: {why}")
        nominals = [nominal for nominal in asked if nominal not in others]
        self._require_executor(nominals)
        late = self._late_changes(nominals)
        self.late = {nominal: late.get(nominal) for nominal in nominals}
        at_once = self.workload.partitions.at_once
        slots = min(at_once, run_tags.slots_of(self.context.run.tags, at_once))
        if self.workload.own_feeds:  # each depends on those before it, and is prepared in its turn
            ready, slots = nominals, 1
        else:
            ready = self._prepare_ahead(nominals)
        made: list[datetime] = []
        try:
            with CommandedStops(claims, ready) as stops:
                for _ in self._computed(ready, slots, stops):
                    made += self._record_together()
        except BaseException as error:
            if not isinstance(error, Exception):
                interrupt(self.context.instance, self.context.run_id, "the process of the run was asked to end")
            self._record_interruption()
            raise
        if made:  # once, for whoever reads what the daemon prints
            log.info(f"{self.workload.name} on {self.workload.cluster} {run_tags.in_words(sorted(made))} succeeded")
        for nominal, reason in sorted(self.failures.items()):
            log.error(f"{self._name(nominal)}: {reason}")
        if self.failures:
            raise dg.Failure(description=_summary(self.workload.name, self.failures, len(nominals)))
        if self.stopped and len(self.stopped) == len(nominals):
            raise dg.Failure(description=_summary(self.workload.name, self.stopped, len(nominals), "not computed"))

    def _require_executor(self, nominals: Sequence[datetime]) -> None:
        """Ends a coordinator's run whose executor does not answer, before it begins: its instances wait for another."""
        executor = self.work.executor
        why = why_away(self.claims.ledger, executor) if executor.name and self.claims.attempts else None
        if why is None:
            return
        for nominal in nominals:
            self._record_state(nominal, InstanceState.WAITING, why, ExecutorAway(why))
        self.events.write()
        raise dg.Failure(description=f"the executor {executor.name} does not answer: {why}")

    def _nominals(self, keys: Sequence[str]) -> list[datetime]:
        instants = [instant for key in keys if (instant := instant_of_key(key)) is not None]
        nominals = [self.workload.partitions.nominal_of(instant) for instant in instants]
        if self.workload.shares_assets:
            nominals = [one for one in nominals if self.workload.timeline.contains(one)]
        needs_order = self.workload.own_feeds or self.workload.replaces_earlier
        return sorted(nominals, reverse=self.workload.order != "FIFO" and not needs_order)

    def _late_changes(self, nominals: Sequence[datetime]) -> Mapping[datetime, tuple[LateChange, ...]]:
        """Changes for late reruns (else empty), with publications of awaited reruns that are not in the request yet."""
        if run_tags.LATE not in self.context.run.tags:
            return {}
        name, cluster, late = self.workload.name, self.workload.cluster, self.workload.late
        watched = {(cluster, name, one.input) for one in late.inputs} if late else set()
        with self.claims.ledger.engine.connect() as connection:
            found = reruns.requests_of(connection, name, cluster, nominals)
            asked = [nominal for nominal, request in found.items() if request.late_workflow]
            newer = changed_inputs.republished(connection, watched, name, cluster, found.keys() - set(asked))
            newer |= changed_inputs.changed_since_read(connection, watched, name, cluster, asked)
        return {nominal: _together(request.changes, newer.get(nominal, ())) for nominal, request in found.items()}

    def _evicted(self, feed: str, instances: Sequence[datetime]) -> Mapping[datetime, datetime]:
        key = (self.workload.reads_on, feed)
        with self.claims.ledger.engine.connect() as connection:
            found = queries.evicted(connection, {key: (min(instances), max(instances))}).get(key, {})
        return {instance: found[instance] for instance in instances if instance in found}

    def _computed(self, ready: Sequence[datetime], slots: int, stops: CommandedStops) -> Iterator[None]:
        """Yields whenever ``outcomes`` arrived; starts nothing once the run is interrupted."""
        ahead = ClaimsAhead(self.claims, Turns(self.workload, self.claims), ready, slots)
        gathering = Gathering(len(ready), 1 if self.workload.goes_on else slots, self.context.log.info)
        with ThreadPoolExecutor(max_workers=slots, thread_name_prefix=self.workload.name) as pool:
            waiting = iter(ready)
            begun = 0
            try:
                for nominal in islice(waiting, 1 if self.workload.goes_on else None):
                    pool.submit(self._compute, nominal, stops, ahead, gathering)
                    begun += 1
                while begun:
                    ended = self.outcomes.wait(begun)
                    begun -= ended
                    yield  # recorded when it goes on here
                    for following in islice(waiting, ended):
                        pool.submit(self._compute, following, stops, ahead, gathering)
                        begun += 1
            except BaseException:
                # The run is interrupted: what waits is dropped, and programs do not outlive it.
                pool.shutdown(wait=False, cancel_futures=True)
                self.claims.locks.stop_waiting()
                gathering.end()
                self.work.executor.interrupt()
                raise

    def _compute(self, nominal: datetime, stops: CommandedStops, ahead: ClaimsAhead, gathering: Gathering) -> None:
        """Computes an instance in a thread of its own, and puts its start and its outcome into the queue."""
        with gathering.instance(), gathered(gathering):
            self._put_outcome(nominal, stops, ahead, gathering)

    def _put_outcome(self, nominal: datetime, stops: CommandedStops, ahead: ClaimsAhead, gathering: Gathering) -> None:
        try:
            left = ahead.take(nominal, gathering.elsewhere)
            if left is None and (why := stops.why_not(nominal)) is not None:
                left = LeftAlone(why)
            prepared = left or self.prepared.get(nominal) or self._prepare_in_turn(nominal)
            if isinstance(prepared, LeftAlone):
                self.outcomes.put(nominal, prepared)
                return
            self.outcomes.put(nominal, None)
            with stops.computing(nominal) as cancellation:
                try:
                    outcome = self._result(prepared, cancellation)
                except FalconError:
                    self._require_inputs(nominal)
                    raise
                self.outcomes.put(nominal, outcome)
        except Exception as error:
            self.outcomes.put(nominal, error)
        except BaseException as error:  # nothing else reports it, and the run would wait for its instance for ever
            self.outcomes.put(nominal, RuntimeError(f"{type(error).__name__}: {error}"))
            raise

    def _prepare(self, nominal: datetime) -> Prepared:
        return self.work.prepare(nominal, self.late[nominal], self._evicted)

    def _prepare_ahead(self, nominals: Sequence[datetime]) -> list[datetime]:
        """Prepares all, records the errors, and returns those that can run."""
        errors: dict[datetime, FalconError] = {}
        for nominal in nominals:
            try:
                self.prepared[nominal] = self._prepare(nominal)
            except FalconError as error:
                errors[nominal] = error
        for nominal, found in errors.items():
            self._record_error(nominal, found, began=False)
        self.events.write()
        return list(self.prepared)

    def _prepare_in_turn(self, nominal: datetime) -> Prepared | LeftAlone:
        """Prepares one of a workload that reads its own outputs, which it may lack as an earlier one failed."""
        try:
            return self._prepare(nominal)
        except FalconError as error:
            if isinstance(error, MissingInputsError) and self.first_failed is not None:
                return LeftAlone(f"{format_instant(self.first_failed)} failed, and {error}")
            self.first_failed = self.first_failed or nominal
            raise

    def _result(self, prepared: Prepared, cancellation: Cancellation) -> Done | StoppedInstance:
        """All errors after a cancellation are due to it."""
        try:
            return prepared.run()
        except BaseException as error:
            self.first_failed = self.first_failed or prepared.nominal
            if cancellation.why is None or not isinstance(error, Exception):
                raise
            return StoppedInstance(cancellation.why)

    def _require_inputs(self, nominal: datetime) -> None:
        """Raises MissingInputsError where a failed instance's inputs were withdrawn meanwhile: it waits for them."""
        try:
            self._prepare(nominal)
        except MissingInputsError as error:
            if error.may_come:
                raise
        except FalconError:
            return  # what it failed of says more

    def _record_together(self) -> list[datetime]:
        """Returns the instances that were made, after all are in the log."""
        over: dict[datetime, Outcome] = {}
        for nominal, outcome in self.outcomes.arrived():
            self._record_outcome(nominal, outcome)
            if outcome is not None:
                over[nominal] = outcome
        self.events.write()
        self.claims.release(over)
        return [one for one, how in over.items() if not isinstance(how, LeftAlone | StoppedInstance | Exception)]

    def _record_outcome(self, nominal: datetime, outcome: Outcome) -> None:
        if outcome is None:
            self.running[nominal] = False
            self._record_state(nominal, InstanceState.RUNNING)
            self.running[nominal] = True
            return
        is_started = nominal in self.running
        is_recorded = self.running.pop(nominal, False)
        if isinstance(outcome, LeftAlone):
            self.context.log.info(f"{self._name(nominal)} is left alone: {outcome.why}")
            if outcome.waits:
                self.stopped[nominal] = outcome.why
                self._record_state(nominal, InstanceState.WAITING, outcome.why)
        elif isinstance(outcome, StoppedInstance):
            self.stopped[nominal] = outcome.why
            self.context.log.warning(f"{self._name(nominal)} was stopped: {outcome.why}")
        elif isinstance(outcome, Exception):
            self._record_error(nominal, outcome, began=is_started)
        else:
            if not is_recorded:  # the interruption came before its start was written down
                self._record_state(nominal, InstanceState.RUNNING)
            definition = self.work.definition(outcome.nominal)
            for event in outcome.events(self._partition(outcome.nominal), self.clock(), definition):
                self.events.add(event)

    def _record_error(self, nominal: datetime, error: Exception, *, began: bool) -> None:
        """Records that an instance failed; or that it waits, where the cause is outside of it.

        Missing inputs are recorded as such. A store that fails only after the instance began may do so because of it.
        """
        log, reason, name = self.context.log, recorded(str(error) or type(error).__name__), self._name(nominal)
        by_hand = nominal not in self.claims.attempts
        is_away = isinstance(error, RootAwayError) or (isinstance(error, UnreachableError) and not began)
        is_taken = isinstance(error, BeingWrittenError)
        waits = isinstance(error, (LockWaitError, *DATABASE_ERRORS)) or ((is_away or is_taken) and not by_hand)
        if isinstance(error, MissingInputsError) and error.may_come:
            withdrawals = Withdrawals(self.claims.ledger, self.workload, partial(self.work.is_there, nominal))
            waits = withdrawals.record(nominal, error.lacking, self.clock())
        if isinstance(error, DATABASE_ERRORS):
            log.warning(f"{name} waits for a later run: the connection to the database was lost\n{logged_stack(error)}")
            reason = "the connection to the database was lost while it ran"
        if waits:
            log.warning(f"{name} was not computed: {reason}")
            # A run by hand shows it to the user who waits for it.
            (self.failures if by_hand else self.stopped)[nominal] = reason
            of_store = StoreAway(reason) if is_away else BeingWritten(reason) if is_taken else None
            self._record_state(nominal, InstanceState.WAITING, reason, of_store)
            return
        self.failures[nominal] = reason
        if not isinstance(error, FalconError):
            # Not foreseen: whoever fixes it needs the traceback, and the other instances need not suffer.
            log.error(f"{name}: {logged_stack(error)}")
        held = HeldBack(reason) if isinstance(error, HeldOutputError) else None
        self._record_state(nominal, InstanceState.FAILED, reason, held)

    def _record_interruption(self) -> None:
        """Records how the interruption left every instance: those that were published nevertheless are done."""
        for nominal, outcome in self.outcomes.all():
            if not (outcome is None or isinstance(outcome, LeftAlone | StoppedInstance | Exception)):
                self._record_outcome(nominal, outcome)
        self.events.write()
        if is_stopped(self.context.instance.get_run_by_id(self.context.run_id)):
            return  # and with it its instances: the ledger knows from the end of the run
        for nominal in sorted(self.running):
            self._record_state(nominal, InstanceState.WAITING, "its run was interrupted")
        self.events.write()

    def _record_state(
        self, nominal: datetime, state: InstanceState, reason: str = "", found: Reason | None = None
    ) -> None:
        key = names.workload_keys(self.workload)[0]
        instance = (self.workload.name, self.workload.cluster, nominal)
        definition = self.work.definition(nominal)
        data = found.as_data() if found else None
        changed = InstanceChanged(*instance, state, self.clock(), reason, reason_data=data, definition=definition)
        if state is InstanceState.RUNNING and self.work.executor.name:
            changed = replace(changed, executor=self.work.executor.name)
        self.events.add(changed.event(key, self._partition(nominal)))

    def _partition(self, nominal: datetime) -> str:
        return key_of(self.workload.partitions.timeline, self.workload.partitions.partition_of(nominal))

    def _name(self, nominal: datetime) -> str:
        return f"{self.workload.name} {format_instant(nominal)}"


def _together(asked: Iterable[LateChange], newer: Iterable[LateChange]) -> tuple[LateChange, ...]:
    """For each input instance, the newer change."""
    return tuple({(one.input, one.feed, one.instance): one for one in (*asked, *newer)}.values())


def _summary(workload: str, reasons: Mapping[datetime, str], total: int, ended: str = "failed") -> str:
    lines = [f"{format_instant(nominal)}: {reason}" for nominal, reason in sorted(reasons.items())]
    return "\n".join([f"{len(reasons)} of {total} instance(s) of {workload} {ended}:", *lines])
