"""Which feed instances must stay because a process instance that runs, waits or is to run again reads them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from falcon_assets.model.process import Input, Process
from falcon_assets.planning.instances.instance_record import InstanceRecord
from falcon_assets.planning.retention.keeping import Need, NeededByProcess
from falcon_assets.planning.rules.retries import settled
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.planning.windows.evaluate import evaluate_time
from falcon_assets.planning.windows.input_windows import latest_instances, widest


@dataclass(frozen=True)
class PendingInstances:
    """The instances of a process on a cluster that are due and not over; what is not due yet needs nothing.

    Attributes:
        process: The process.
        timeline: Its nominal times there.
        now: The time.
        first_open: Everything before it is settled, but for what ``records`` and ``again`` say. None: the process is
            not scheduled, and only what a run has in hand is pending.
        records: What is known, by nominal time: about instances from ``first_open`` on and about those before it that
            are not settled.
        again: Those that are to run again for late data, asked for already or when their next check is due.
    """

    process: Process
    timeline: Timeline
    now: datetime
    first_open: datetime | None
    records: Mapping[datetime, InstanceRecord]
    again: Collection[datetime]

    def why(self, nominal: datetime) -> str | None:
        """What that instance is pending for, in a few words; None where it is not pending."""
        record = self.records.get(nominal)
        if record is not None and record.in_flight:
            return f"is in run {record.queued_run or record.run_id}"
        if nominal in self.again:
            return "is to run again for late data"
        if self.first_open is None or nominal > self.now:
            return None
        if record is not None:
            return None if settled(record, self.process) else "has yet to run"
        return "has yet to run" if nominal >= self.first_open else None

    def all(self) -> list[datetime]:
        """All of them, oldest first."""
        known = {*self.records, *self.again}
        following = self.timeline.between(self.first_open, self.now) if self.first_open else []
        return sorted(one for one in {*known, *following} if self.timeline.contains(one) and self.why(one))


def needed_by_readers(
    pending: PendingInstances, declared: Input, feed: Timeline, available: Collection[datetime]
) -> Need:
    """What the pending instances of a process need of the feed of one of their inputs, optional inputs included.

    Args:
        pending: The process instances.
        declared: One of the inputs of the process.
        feed: The timeline of its feed on the cluster.
        available: The available instances of the feed, for ``latest`` and ``future``; a set, for speed.

    Raises:
        ExpressionError: an input window lies beyond the years 1 to 9999.
    """
    window = widest(declared)
    if window is not None:
        return _window(pending, window, feed).get
    return _latest(pending, declared, feed, available).get


def _window(pending: PendingInstances, declared: Input, feed: Timeline) -> dict[datetime, NeededByProcess]:
    """What windows between two times need, each instance for the first that reads it."""
    found: dict[datetime, NeededByProcess] = {}
    zone = pending.process.timezone
    before = (0, -1)  # indexes of a window that was gone through: neighbours read much the same
    for nominal in pending.all():
        start = evaluate_time(declared.start.call, nominal, zone)
        end = evaluate_time(declared.end.call, nominal, zone)
        if start > end:
            continue
        first = max(feed.index_at_or_before(start), 0)
        last = min(feed.index_at_or_before(end), feed.count - 1)
        new = max(first, before[1] + 1) if first >= before[0] else first
        reason = NeededByProcess(pending.process.name, nominal, pending.why(nominal) or "")
        for index in range(new, last + 1):
            found.setdefault(feed.instance(index), reason)
        before = max(before, (first, last), key=itemgetter(1))
    return found


def _latest(
    pending: PendingInstances, declared: Input, feed: Timeline, available: Collection[datetime]
) -> dict[datetime, NeededByProcess]:
    """What windows of ``latest`` and ``future`` need now; one that is not full yet needs all that is there for it."""
    found: dict[datetime, NeededByProcess] = {}
    is_latest = declared.start.call.name == "latest"
    for nominal in pending.all():
        reason = NeededByProcess(pending.process.name, nominal, pending.why(nominal) or "")
        window = latest_instances(declared, feed, nominal, available, pending.process.timezone)
        if window is None:
            window = [one for one in available if (one <= nominal) is is_latest or one == nominal]
        for instance in window:
            found.setdefault(instance, reason)
    return found
