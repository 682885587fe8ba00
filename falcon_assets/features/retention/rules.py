"""Rules for feed instances that must stay: running, waiting or repeated instances read them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from falcon_assets.model.expression import Call
from falcon_assets.model.process import Input
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.input_windows import reader_span, widest
from falcon_assets.planning.instance_record import InstanceRecord
from falcon_assets.planning.reasons_to_keep import Need, NeededByProcess
from falcon_assets.planning.retries import settled
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class PendingInstances:
    """The unfinished instances of a workload that are due; future ones need nothing.

    Attributes:
        first_open: All before it are settled, except those in ``records`` and ``again``. None: the workload is not
            scheduled, and only instances in a run are pending.
        records: By nominal time, from ``first_open`` on, and earlier unsettled ones.
        again: Late reruns, requested or expected at their next check.
        asked: Instances for which a user started a run -> the run.
    """

    workload: Workload
    now: datetime
    first_open: datetime | None
    records: Mapping[datetime, InstanceRecord]
    again: Collection[datetime]
    asked: Mapping[datetime, str] = field(default_factory=dict)

    def why(self, nominal: datetime) -> str | None:
        record = self.records.get(nominal)
        if record is not None and record.in_flight:
            return f"is in run {record.run}"
        if nominal in self.asked:
            return f"is in run {self.asked[nominal]}"
        if nominal in self.again:
            return "is to run again for late data"
        if self.first_open is None or nominal > self.now:
            return None
        if record is not None:
            return None if settled(record, self.workload.retry) else "has yet to run"
        return "has yet to run" if nominal >= self.first_open else None

    def first_from(self, moment: datetime) -> datetime | None:
        """Returns the oldest at or after ``moment``; None: there is none. The cost does not grow with their number."""
        at = bisect_left(self._known, moment)
        known = self._known[at] if at < len(self._known) else None
        if self.first_open is not None:
            timeline = self.workload.timeline
            for index in timeline.indexes(max(moment, self.first_open), self.now):
                nominal = timeline.instance(index)
                if known is not None and known <= nominal:
                    break
                if nominal not in self.records:
                    return nominal
        return known

    @cached_property
    def _known(self) -> list[datetime]:
        return sorted(
            one
            for one in {*self.records, *self.again, *self.asked}
            if self.workload.timeline.contains(one) and self.why(one)
        )


def needed_by_readers(
    pending: PendingInstances,
    declared: Input,
    feed: Timeline,
    available: Collection[datetime],
    asked: Collection[datetime],
) -> Need:
    """Returns the needs of pending instances for the feed of one of their inputs, optional inputs included.

    The cost grows with ``asked`` and ``available`` (for ``latest`` and ``future``), not with the pending instances.
    Raises ExpressionError where an input window is outside of the years 1 to 9999.
    """
    window = widest(declared)
    needed = _Needed(sorted(filter(feed.contains, available if window is None else asked)), pending)
    if window is not None:
        _need_windows(needed, window, feed)
    elif declared.start.call.name == "latest":
        _need_latest(needed, *_numbers(declared.start.call), *_numbers(declared.end.call))
    else:
        _need_future(needed, feed, _numbers(declared.start.call), _numbers(declared.end.call))
    return needed.reasons.get


@dataclass
class _Needed:
    """Instances of a feed, the oldest first, and the first reader of each that is needed."""

    instances: Sequence[datetime]
    pending: PendingInstances
    reasons: dict[datetime, NeededByProcess] = field(default_factory=dict)
    _before: range = range(0)

    def need(self, first: int, stop: int, reader: datetime) -> None:
        """Marks instances from ``first`` to before ``stop`` as read."""
        new = max(first, self._before.stop) if first >= self._before.start else first
        if new < stop:
            reason = NeededByProcess(self.pending.workload.name, reader, self.pending.why(reader) or "")
            for instance in self.instances[new:stop]:
                self.reasons.setdefault(instance, reason)
        if stop > self._before.stop:
            self._before = range(first, stop)


def _need_windows(needed: _Needed, declared: Input, feed: Timeline) -> None:
    """Adds needs of windows between two times; visits only readers that may need a further instance."""
    pending, zone = needed.pending, needed.pending.workload.timezone
    timeline = pending.workload.timeline
    begun = timeline.start
    for at, instance in enumerate(needed.instances):
        if instance in needed.reasons:
            continue
        span = reader_span(declared, timeline, feed, zone, instance)
        while instance not in needed.reasons:
            reader = pending.first_from(span.first if span.is_exact else max(begun, span.first))
            if reader is None or reader > span.last:
                break
            if span.is_exact:
                needed.need(at, at + 1, reader)
                break
            needed.need(*_window(needed.instances, declared, feed, reader, zone), reader)
            begun = reader + MICROSECOND


def _window(
    instances: Sequence[datetime], declared: Input, feed: Timeline, nominal: datetime, zone: str
) -> tuple[int, int]:
    start = evaluate_time(declared.start.call, nominal, zone)
    end = evaluate_time(declared.end.call, nominal, zone)
    if start > end:
        return 0, 0
    first, following = feed.index_at_or_before(start), feed.index_at_or_before(end) + 1
    before, until = max(first, 0), min(following, feed.count)
    if before >= until:
        return 0, 0
    return bisect_left(instances, feed.instance(before)), bisect_right(instances, feed.instance(until - 1))


def _need_latest(needed: _Needed, first: int, last: int) -> None:
    """Adds needs of windows from ``latest(first)`` to ``latest(last)``; one that is not full needs all before it.

    Windows are equal between two available instances: the first reader of each interval is enough.
    """
    there = needed.instances
    reader = needed.pending.first_from(there[0]) if there and first <= last else None
    while reader is not None:
        until = bisect_right(there, reader)
        is_full = until > -first
        needed.need(until - 1 + first if is_full else 0, until + last if is_full else until, reader)
        reader = needed.pending.first_from(there[until]) if until < len(there) else None


def _need_future(needed: _Needed, feed: Timeline, first: tuple[int, ...], last: tuple[int, ...]) -> None:
    """Adds needs of windows from ``future(*first)`` to ``future(*last)``; one that is not full needs all after it.

    Windows change where a reader passes an available instance, and where an instance comes within a limit.
    """
    there = needed.instances
    reader = needed.pending.first_from(needed.pending.workload.timeline.start) if first[0] <= last[0] else None
    while reader is not None:
        passed = bisect_left(there, reader)
        if passed == len(there):
            return
        index = feed.indexes(reader, feed.end).start
        within = [_until(there, feed, index + limit) for _, limit in (first, last)]
        is_full = all(passed + number < stop for (number, _), stop in zip((first, last), within, strict=True))
        needed.need(passed + first[0] if is_full else passed, passed + last[0] + 1 if is_full else len(there), reader)
        entering = [
            feed.index_at_or_before(there[stop]) - limit
            for (_, limit), stop in zip((first, last), within, strict=True)
            if stop < len(there)
        ]
        changes = [there[passed], *(feed.instance(one) for one in entering)]
        reader = needed.pending.first_from(min(changes) + MICROSECOND)


def _until(there: Sequence[datetime], feed: Timeline, stop: int) -> int:
    return bisect_left(there, feed.instance(stop)) if stop < feed.count else len(there)


def _numbers(call: Call) -> tuple[int, ...]:
    return tuple(arg for arg in call.args if isinstance(arg, int))
