"""The backlog of a workload: its instances that are due and not over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain

from falcon_assets.instances.rules.situation import Situation
from falcon_assets.instances.rules.waiting import TAKEN, Waiting
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.retries import settled


class Backlog:
    """The instances of a decision; reasons of those in a run or suspended are added to ``waiting`` in passing.

    ``first_open`` is the index of the first that is neither settled nor suspended, which may last for ever.
    """

    def __init__(self, at: Situation) -> None:
        self.at = at
        self.waiting: dict[datetime, Reason] = {}
        self._retry = at.workload.retry
        self.is_fifo = at.workload.order == "FIFO"
        now = at.workload.last_due(at.now)
        horizon = now if at.until is None else min(now, at.until)
        self.due = at.timeline.indexes(at.timeline.start, horizon).stop
        self.first_open = max(at.first_open, at.timeline.first)
        while self.first_open < self.due and self._is_passed(at.timeline.instance(self.first_open)):
            self.first_open += 1

    @property
    def spans(self) -> list[range]:
        """All that may be pending, in rising order; older ones are reruns, and failures of runs by hand."""
        timeline, first_open = self.at.timeline, min(self.first_open, self.due)
        again = list[int]()
        if first_open > 0:
            first = timeline.instance(first_open)
            older = [T for T in self.at.records if first > T and not self.is_settled(T) and timeline.contains(T)]
            again = sorted(map(timeline.index_at_or_before, older))
        return [*(range(index, index + 1) for index in again), range(first_open, self.due)]

    def is_settled(self, nominal: datetime) -> bool:
        record = self.at.records.get(nominal)
        return record is not None and settled(record, self._retry)

    def _is_passed(self, nominal: datetime) -> bool:
        record = self.at.records.get(nominal)
        return record is not None and (settled(record, self._retry) or record.state is InstanceState.SUSPENDED)

    def pending(self, spans: Sequence[range], oldest_first: bool) -> Iterator[tuple[int, datetime]]:
        in_order = chain(*spans) if oldest_first else chain(*(reversed(span) for span in reversed(spans)))
        timeline, before = self.at.timeline, None
        for index in in_order:
            nominal = timeline.instance(index)
            # A day that a zone left out makes two neighbours one: see Timeline.
            if nominal == before or self.is_settled(nominal):
                continue
            before = nominal
            reason = first_reason(TAKEN, self.at, nominal)
            if reason:
                self.waiting[nominal] = reason
            else:
                yield index, nominal

    def following(self, index: int, spans: Sequence[range]) -> list[range]:
        """The rest of some spans in the order of the workload, from an index on."""
        if self.is_fifo:
            left = (range(max(span.start, index), span.stop) for span in spans)
        else:
            left = (range(span.start, min(span.stop, index + 1)) for span in spans)
        return [span for span in left if span]

    def count(self, spans: Sequence[range], said: Iterable[datetime]) -> int:
        """Counts pending instances in spans, without ``said``."""
        timeline = self.at.timeline
        ends = [(timeline.instance(span.start), timeline.instance(span.stop - 1)) for span in spans]
        known = {*said, *filter(self.is_settled, self.at.records)}
        inside = sum(1 for T in known if any(first <= T <= last for first, last in ends) and timeline.contains(T))
        return sum(map(len, spans)) - inside


def first_reason(rules: Sequence[type[Waiting]], at: Situation, nominal: datetime) -> Waiting | None:
    record = at.records.get(nominal)
    for rule in rules:  # a generator would take a fifth longer, and this is asked a thousand times in a tick
        found = rule.find(at, nominal, record)
        if found:
            return found
    return None
