"""``kill``, ``suspend`` and ``resume`` of instances, as events outside of runs, which the ledger folds at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import dagster as dg

from falcon_assets.history.dagster_internals.events import record_outside_runs
from falcon_assets.history.database import parts
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.instances.operations.selection import (
    CommandResult,
    InstanceChange,
    InstanceRequest,
    Outcome,
    Selected,
    operation_name,
    require_instances,
    select_instances,
)
from falcon_assets.instances.rules.applicable_states import AFTER, REASONS, InstanceCommand, stops_or_resumes
from falcon_assets.instances.store.known_instances import known_instances
from falcon_assets.model.access import Role
from falcon_assets.operations.audit import audited
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.workloads import Workload


def kill_instances(installation: Installation, request: InstanceRequest) -> CommandResult:
    """Ends instances that wait, run, are suspended or are to be retried; finished ones stay unchanged.

    A run that computes one stops it within seconds and continues with the others; publishing in progress is completed.

    Raises:
        DeniedError: an entity belongs to others.
        UnknownInstanceError, UnknownEntityError, QueryError: as :func:`.select_instances`.
    """
    return _tell(InstanceCommand.KILL, installation, request)


def suspend_instances(installation: Installation, request: InstanceRequest) -> CommandResult:
    """Holds instances that wait, run or are to be retried until resumed; otherwise as :func:`kill_instances`."""
    return _tell(InstanceCommand.SUSPEND, installation, request)


def resume_instances(installation: Installation, request: InstanceRequest) -> CommandResult:
    """Lets suspended instances wait again, with their timeout from now on; raises as :func:`kill_instances`."""
    return _tell(InstanceCommand.RESUME, installation, request)


class KillInstances(InstanceChange):
    """Kill instances of NAME that are waiting, running or suspended.

    Killed instances do not run again until `falcon instance rerun`. A run stops computing them within seconds and
    completes its other instances; a publication in progress is completed. Finished instances are left unchanged.
    """

    command = "instance kill"
    role = Role.LAUNCHER

    def run(self, installation: Installation) -> CommandResult:
        return kill_instances(installation, self.request)


class SuspendInstances(InstanceChange):
    """Suspend instances of NAME that are waiting or running.

    Running instances are stopped, as by `falcon instance kill`, and start over after `falcon instance resume`. Finished
    instances are left unchanged.
    """

    command = "instance suspend"
    role = Role.LAUNCHER

    def run(self, installation: Installation) -> CommandResult:
        return suspend_instances(installation, self.request)


class ResumeInstances(InstanceChange):
    """Resume suspended instances of NAME; their timeout starts again now."""

    command = "instance resume"
    role = Role.LAUNCHER

    def run(self, installation: Installation) -> CommandResult:
        return resume_instances(installation, self.request)


def _tell(command: InstanceCommand, installation: Installation, request: InstanceRequest) -> CommandResult:
    ledger, now = installation.ledger, installation.settings.now()
    with audited(installation, operation_name(command), request) as audit:
        actor = audit.principal.name
        reason = REASONS[command](actor, request.reason)
        ledger.catch_up()
        with ledger.engine.begin() as connection:
            chosen = select_instances(installation, connection, request.query, now)
        changes = [one for one in chosen if stops_or_resumes(command, one.record, one.request, one.workload.retry)]
        require_instances(audit, command, chosen, changes)
        changed = {one.key for one in changes}
        if not request.dry_run:
            _record(ledger.instance, command, changes, reason, now)
            ledger.catch_up()
            chosen = _after(installation, chosen)
            # An instance that ended before the command stays as it ended.
            changed &= {one.key for one in chosen if one.record.reason_data == reason.as_data()}
        audit.result(bool(changed))
    items = tuple(Outcome(one.info(), one.key in changed) for one in chosen)
    return CommandResult(command.value, actor, request.reason, now, request.dry_run, items)


def _record(
    instance: dg.DagsterInstance, command: InstanceCommand, changes: Iterable[Selected], reason: Reason, now: datetime
) -> None:
    by_workload: dict[Workload, list[Selected]] = {}
    for one in changes:
        by_workload.setdefault(one.workload, []).append(one)
    record = record_outside_runs(instance)
    for workload, own in by_workload.items():
        key, partitions = names.workload_keys(workload)[0], workload.partitions
        for part in parts(own):
            record(
                [
                    InstanceChanged(
                        *(workload.name, workload.cluster, one.nominal, AFTER[command], now, str(reason)),
                        reason_data=reason.as_data(),
                        before=one.record.state,
                    ).event(key, key_of(partitions.timeline, partitions.partition_of(one.nominal)))
                    for one in part
                ]
            )


def _after(installation: Installation, chosen: Sequence[Selected]) -> list[Selected]:
    with installation.ledger.engine.connect() as connection:
        known = known_instances(connection, [one.key for one in chosen])
    return [Selected(one.workload, known[one.key].record, known[one.key].waiting, one.versions) for one in chosen]
