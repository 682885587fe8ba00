"""Operations on instances of flows: run, kill, status; and why a flow takes the way that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from falcon_assets.errors import EntityStatusError, UnknownInstanceError
from falcon_assets.features.entities.status import entity_states
from falcon_assets.features.flows.drawing import said
from falcon_assets.features.flows.jobs import (
    FlowJob,
    JobState,
    Transfer,
    jobs_of,
    newest_due,
    state_of,
    summed_up,
    transferred,
)
from falcon_assets.features.flows.operations import WAITING, OfFlow, plan_of
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import CommandResult, InstanceRequest
from falcon_assets.instances.operations.stopping import kill_instances
from falcon_assets.instances.store.executors import known_executors
from falcon_assets.instances.views.listing import instance_status
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.access import Role
from falcon_assets.model.flow import Flow
from falcon_assets.model.instant import Instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Result
from falcon_assets.planning.executor_health import ExecutorRecord, Health
from falcon_assets.planning.flows.plans import ExecutorNow, FlowPlan, FlowPlanner
from falcon_assets.planning.flows.routes import FlowRoute

_INSTANCE = "Nominal time (YYYY-MM-DDTHH:MMZ)."


class OfFlowInstance(OfFlow):
    """Fields of commands on an instance of a flow."""

    instance: Annotated[Instant | None, Given("[INSTANCE]")] = Field(None, description=_INSTANCE)


def _jobs(installation: Installation, flow: Flow) -> tuple[FlowPlan, list[FlowJob]]:
    plan = plan_of(installation, flow)
    return plan, jobs_of(installation.entities, plan)


def _require_jobs(flow: Flow, plan: FlowPlan, jobs: Sequence[FlowJob]) -> None:
    if not jobs:
        why = "; ".join(plan.waits) or "nothing of it is on a cluster of this colo"
        raise EntityStatusError(f"flow {flow.name!r} waits: {why}")


def _first(jobs: Sequence[FlowJob]) -> list[FlowJob]:
    """The jobs that wait for no other."""
    return [one for one in jobs if one.hop.kind == "import"] or [*jobs]


def _which(flow: Flow, jobs: Sequence[FlowJob], asked: datetime | None, now: datetime) -> datetime:
    nominal = asked or newest_due(_first(jobs), now)
    if nominal is None:
        raise UnknownInstanceError(f"flow {flow.name!r} has no instance yet: the first is due later")
    _first(jobs)[0].workload.timeline.require(nominal, f"flow {flow.name!r}")
    return nominal


class RunFlow(Change, OfFlowInstance):
    """Run INSTANCE of the flow NAME again, or the newest that is due: it is read again, copied and exported.

    What has not run yet runs by itself when it is due. An export replaces what the instance wrote before.
    """

    command = "flow run"
    role = Role.LAUNCHER
    needs = "the name of a flow"

    def run(self, installation: Installation) -> CommandResult:
        flow = self.found(installation)
        plan, jobs = _jobs(installation, flow)
        _require_jobs(flow, plan, jobs)
        nominal = _which(flow, jobs, self.instance, installation.settings.now())
        options = RerunOptions(force=True, downstream=True)
        return _together(
            rerun_instances(installation, _request(self, one, InstanceQuery(start=nominal)), options)
            for one in _first(jobs)
        )


class KillFlow(Change, OfFlowInstance):
    """Kill what runs of the flow NAME; with INSTANCE all of that instance, whether it runs or waits.

    Killed instances do not run again until `falcon flow run`.
    """

    command = "flow kill"
    role = Role.LAUNCHER
    needs = "the name of a flow"

    def run(self, installation: Installation) -> CommandResult:
        flow = self.found(installation)
        plan, jobs = _jobs(installation, flow)
        _require_jobs(flow, plan, jobs)
        running = InstanceQuery(filters=(("state", "RUNNING"),))
        query = InstanceQuery(start=self.instance) if self.instance else running
        return _together(kill_instances(installation, _request(self, one, query)) for one in jobs)


def _request(asked: Change, job: FlowJob, query: InstanceQuery) -> InstanceRequest:
    query = replace(query, name=job.workload.name, cluster=job.workload.cluster)
    return InstanceRequest(query, asked.actor, asked.reason, asked.dry_run)


def _together(results: Iterable[CommandResult]) -> CommandResult:
    first, *others = results
    items = {(one.instance.entity, one.instance.cluster, one.instance.instance): one for one in first.items}
    for result in others:
        for one in result.items:
            key = (one.instance.entity, one.instance.cluster, one.instance.instance)
            items[key] = one if one.changed or key not in items else items[key]
    notes = dict.fromkeys(note for result in (first, *others) for note in result.notes)
    return replace(first, items=tuple(items.values()), notes=tuple(notes))


@dataclass(frozen=True)
class FlowStatus(Result):
    """An instance of a flow, and of each of its jobs.

    Attributes:
        status: WAITING, RUNNING or SUSPENDED of the flow.
        state: Of the instance; empty: there is none yet.
        destinations: Destination -> the state of the job that brings data there.
    """

    name: str
    status: str
    instance: Instant | None
    state: str
    message: str
    destinations: dict[str, str]
    jobs: tuple[JobState, ...]


class FlowStatusOf(OfFlowInstance):
    """Show INSTANCE of the flow NAME, or the newest that is due, job by job: state, rows, watermarks, times.

    It says for each destination whether it has the data.
    """

    command = "flow status"
    page = "flow"

    def run(self, installation: Installation) -> FlowStatus:
        flow, now = self.found(installation), installation.settings.now()
        plan, jobs = _jobs(installation, flow)
        if not jobs:
            message = "; ".join(plan.waits) or "nothing of it is on a cluster of this colo"
            return FlowStatus(flow.name, WAITING, None, "", message, {}, ())
        names = {one.name for one in plan.feeds}
        statuses = {one.status for one in entity_states(installation, "feed") if one.name in names}
        status = "SUSPENDED" if "SUSPENDED" in statuses else "RUNNING"
        nominal = self.instance or newest_due(_first(jobs), now)
        if nominal is None:
            return FlowStatus(flow.name, status, None, "", "the first instance is due later", {}, ())
        _which(flow, jobs, nominal, now)
        with installation.tables_caught_up().connect() as connection:
            moved = transferred(connection, jobs, nominal)
        states = tuple(_state(installation, one, nominal, moved) for one in jobs)
        state, message = summed_up(states)
        destinations = {one.destination: one.state for one in states}
        return FlowStatus(flow.name, status, nominal, state, message, destinations, states)


def _state(
    installation: Installation, job: FlowJob, nominal: datetime, moved: dict[tuple[str, str], Transfer]
) -> JobState:
    workload = job.workload
    query = InstanceQuery(name=workload.name, cluster=workload.cluster, start=nominal)
    (info,) = instance_status(installation, query).items
    return state_of(job, info, moved.get((workload.name, workload.cluster), Transfer()))


@dataclass(frozen=True)
class ExplainedHop(Result):
    """A hop with what is known of its executor now: ``health``, and ``load`` from 0 to 1."""

    text: str
    cost: int
    health: str
    load: float


@dataclass(frozen=True)
class ExplainedFlow(Result):
    """Why a flow takes its way.

    Attributes:
        waits: Why there is none.
        better: The way that would be cheaper as long as executors are as busy and healthy as now; empty: there is none.
    """

    name: str
    hops: tuple[ExplainedHop, ...]
    waits: tuple[str, ...]
    better: tuple[str, ...]


class ExplainFlow(OfFlow):
    """Explain the way that the flow NAME takes: its hops, what they cost, and how their executors are.

    A hop costs 1000, and up to twice as much where its executor is busy. The way is chosen by the definitions; within a
    cluster, the least busy executor that answers takes the work. If another way would be cheaper as things are, it is
    shown, too.
    """

    command = "flow explain"
    page = "flow"

    def run(self, installation: Installation) -> ExplainedFlow:
        flow, store = self.found(installation), installation.all_entities
        assert flow.validity is not None
        plan = plan_of(installation, flow)
        states = _executor_states(installation)
        now = FlowPlanner(store.everywhere, store.datasources, states).plan(flow, flow.validity)
        hops = []
        for hop in plan.route.hops if plan.route else ():
            known = states.get((hop.cluster, hop.step.executor), ExecutorNow())
            health = "" if known == ExecutorNow() else "answers" if known.is_online else "does not answer"
            hops.append(ExplainedHop(said(hop), hop.step.cost, health, known.load))
        better = _said(now.route) if _places(now.route) != _places(plan.route) else ()
        return ExplainedFlow(flow.name, tuple(hops), plan.waits, better)


def _places(route: FlowRoute | None) -> list[tuple[object, object]]:
    return [(hop.source, hop.target) for hop in route.hops] if route else []


def _said(route: FlowRoute | None) -> tuple[str, ...]:
    return tuple(said(hop) for hop in route.hops) if route else ()


def _executor_states(installation: Installation) -> dict[tuple[str, str], ExecutorNow]:
    """What the last probes found; of an executor that is the only one of its cluster, nothing is known."""
    found = {}
    with installation.tables.connect() as connection:
        for cluster in installation.all_entities.everywhere.values():
            for name, record in known_executors(connection, cluster).items() if cluster.executors else ():
                found[cluster.name, name] = _executor_state(record)
    return found


def _executor_state(record: ExecutorRecord) -> ExecutorNow:
    load = record.load(datetime.now(UTC))
    used = 1 - load.free / load.cores if load and load.cores else 0.0
    return ExecutorNow(1.0 if load and load.waiting else used, record.health is not Health.OFFLINE)
