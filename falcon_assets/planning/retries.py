"""The rules of retry and timeout: when an instance is over, when it is tried again and how long it waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from falcon_assets.model.process import Process, Retry
from falcon_assets.planning.clock import later
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.workloads import Workload

_SHORTEST_TIMEOUT = timedelta(minutes=30)


def settled(record: InstanceRecord, retry: Retry) -> bool:
    if record.in_flight:
        return False
    if record.state in (InstanceState.FAILED, InstanceState.TIMED_OUT):
        return not _is_retried(record, retry)
    return record.state in (InstanceState.SUCCEEDED, InstanceState.SKIPPED, InstanceState.KILLED)


def is_final(record: InstanceRecord, retry: Retry, request: RerunRequest | None) -> bool:
    begun = request is not None and _has_begun(request, record)
    return settled(_counted_anew(request, record) if request is not None and begun else record, retry)


def opens_at(record: InstanceRecord, retry: Retry) -> datetime | None:
    if record.in_flight or record.ended is None:
        return None
    if record.waits_for_store:
        return later(record.ended, retry.delay.length)  # whatever the policy is: nothing has failed
    if not _is_retried(record, retry):
        return None
    doublings = max(record.failures - 1, 0) if retry.policy == "exp-backoff" else 0
    return later(record.ended, retry.delay.length, 1 << doublings)


def is_alive(request: RerunRequest, record: InstanceRecord, retry: Retry) -> bool:
    """True until the instance is over again, by a later attempt or because it timed out."""
    return not (_has_begun(request, record) and settled(_counted_anew(request, record), retry))


def reopened(request: RerunRequest, record: InstanceRecord) -> InstanceRecord:
    if _has_begun(request, record):
        return _counted_anew(request, record)
    if record.in_flight:
        return record
    return replace(record, state=InstanceState.WAITING, reason="", reason_data=None, failures=0)


def waits_for_rerun(request: RerunRequest, record: InstanceRecord) -> bool:
    return not (record.in_flight or _has_begun(request, record))


def timeout_of(workload: Process | Workload) -> timedelta:
    return workload.timeout.length if workload.timeout else max(6 * workload.frequency.length, _SHORTEST_TIMEOUT)


def gives_up_at(waits_from: datetime, workload: Workload) -> datetime:
    return later(waits_from, timeout_of(workload))


def timeout_text(workload: Process | Workload) -> str:
    if workload.timeout:
        return str(workload.timeout)
    return "minutes(30)" if timeout_of(workload) == _SHORTEST_TIMEOUT else f"6 x {workload.frequency}"


def _is_retried(record: InstanceRecord, retry: Retry) -> bool:
    if retry.policy == "final" or record.failures > retry.attempts or record.is_held_back:
        return False
    return record.state is InstanceState.FAILED or (record.state is InstanceState.TIMED_OUT and retry.on_timeout)


def _has_begun(request: RerunRequest, record: InstanceRecord) -> bool:
    if record.attempt > request.attempt:
        return True
    if record.state is not InstanceState.TIMED_OUT or record.ended is None:
        return False
    # Times alone do not show where the clock was set back in between.
    return record.ended > request.requested_at or record.failures > request.failures


def _counted_anew(request: RerunRequest, record: InstanceRecord) -> InstanceRecord:
    return replace(record, failures=max(record.failures - request.failures, 0))


@dataclass(frozen=True)
class KnownInstance:
    record: InstanceRecord
    request: RerunRequest | None = None

    @property
    def waiting(self) -> RerunRequest | None:
        return self.request if self.request is not None and waits_for_rerun(self.request, self.record) else None

    def is_asked_for(self, retry: Retry) -> bool:
        return self.request is not None and is_alive(self.request, self.record, retry)

    def is_over(self, retry: Retry) -> bool:
        return not self.is_asked_for(retry) and settled(self.record, retry)
