"""Reasons why listed instances wait, by the rules of coordinators, for these few only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status, statuses
from falcon_assets.errors import FalconError
from falcon_assets.history.dagster_internals.tables import has_unfinished_runs
from falcon_assets.instances.coordination.cluster_reruns import reruns_on
from falcon_assets.instances.coordination.cluster_snapshot import ClusterSnapshot
from falcon_assets.instances.coordination.executors import Executors
from falcon_assets.instances.coordination.input_gates import input_gates
from falcon_assets.instances.coordination.producer_situations import ProducerSituations
from falcon_assets.instances.coordination.queues import Queues
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Situation
from falcon_assets.instances.rules.waiting import NOT_READY, TAKEN, InRun, NoFreeSlot
from falcon_assets.instances.store.instance_pages import Key
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.instance_record import RerunRequest
from falcon_assets.planning.reasons import LaunchPending, NotScheduled, Reason, RerunRequested, TimePending, Undecidable
from falcon_assets.planning.retries import reopened
from falcon_assets.planning.workloads import Workload

if TYPE_CHECKING:
    from dagster import DagsterRun


def waiting_reasons(
    installation: Installation,
    connection: Connection,
    store: EntityStore,
    waiting: Sequence[tuple[Workload, datetime]],
    now: datetime,
) -> dict[Key, dict[str, Any]]:
    if not waiting:
        return {}
    unfinished = _unfinished(installation) if has_unfinished_runs(connection) else ()
    queues = Queues(installation.settings.queues, store, [(one.job_name, one.tags) for one in unfinished])
    return recorded_reasons(connection, store, waiting, now, unfinished, queues)


def recorded_reasons(
    connection: Connection,
    store: EntityStore,
    waiting: Sequence[tuple[Workload, datetime]],
    now: datetime,
    unfinished: Collection[DagsterRun] = (),
    queues: Queues | None = None,
) -> dict[Key, dict[str, Any]]:
    nominals: dict[Workload, list[datetime]] = {}
    for workload, nominal in waiting:
        nominals.setdefault(workload, []).append(nominal)
    status = statuses(connection, [one.entity for one in nominals], now)
    found: dict[Key, dict[str, Any]] = {}
    for cluster in {one.cluster for one in nominals}:
        own = [one for one in nominals if one.cluster == cluster]
        try:
            members = {one.name: Readiness(one) for one in own}
            reruns = reruns_on(connection, store, cluster, (), now)
            since = {one.name: min(nominals[one]) for one in own}
            last = max(max(nominals[one]) for one in own)
            producers = ProducerSituations(connection, store, unfinished, now)
            what = (connection, cluster, list(members.values()), status, unfinished, now, last, reruns, since)
            gates = input_gates(connection, store, now)
            snapshot = ClusterSnapshot(*what, producers=producers.of, gates=gates)
            executors = Executors(connection, store, cluster, datetime.now(UTC))
        except FalconError as error:
            found |= {(one.name, cluster, at): Undecidable(str(error)).as_data() for one in own for at in nominals[one]}
            continue
        for one in own:
            asked = reruns.requests.get(one.name, {})
            is_scheduled = status[one.entity.kind, one.entity.name].status is not Status.SUBMITTED
            try:
                admission = queues.admission(one) if queues else None
                situation = snapshot.situation(members[one.name], 0, admission, executors.choice(one))
                reasons = [_reason(situation, at, now, is_scheduled=is_scheduled) for at in nominals[one]]
            except FalconError as error:
                reasons = [Undecidable(str(error))] * len(nominals[one])
            for at, reason in zip(nominals[one], reasons, strict=True):
                found[one.name, cluster, at] = _with_request(asked.get(at), reason).as_data()
    return found


def _with_request(request: RerunRequest | None, reason: Reason) -> Reason:
    if request is None or isinstance(reason, InRun):
        return reason
    return RerunRequested(request.by, request.reason, None if isinstance(reason, LaunchPending) else str(reason))


def _unfinished(installation: Installation) -> Collection[DagsterRun]:
    from falcon_assets.instances.runs.dead_runs import unfinished_runs  # noqa: PLC0415 - it imports Dagster

    return unfinished_runs(installation.instance)


def _reason(at: Situation, nominal: datetime, now: datetime, *, is_scheduled: bool) -> Reason:
    record = at.records.get(nominal)
    if record is not None and nominal in at.requests:
        record = reopened(at.requests[nominal], record)
    taken = next((found for rule in TAKEN if (found := rule.find(at, nominal, record))), None)
    if taken:
        return taken
    due = at.workload.due(nominal)
    if due > now:
        return TimePending(due)
    if not is_scheduled:
        return NotScheduled(at.workload.entity.name)
    reason: Reason | None = next((found for rule in NOT_READY if (found := rule.find(at, nominal, record))), None)
    if reason is None and at.slots_in_use >= at.at_once:
        reason = NoFreeSlot(at.workload.parallel, at.at_once < at.workload.parallel)
    elif reason is None:
        refusal = at.admission.refusal if at.admission else None
        reason = refusal or (at.executors.refusal if at.executors else None)
    return reason or LaunchPending()
