"""What to do about the instances of a workload now: run, skip, give up or go on waiting (source: Falcon's coordinator).

Nothing here acts: the same situation always gives the same decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice

from falcon_assets.planning.instances.instance_record import LATE, InstanceRecord, InstanceState
from falcon_assets.planning.instances.reason import Reason
from falcon_assets.planning.rules.own_outputs import OwnChain
from falcon_assets.planning.rules.retries import later, reopened, settled
from falcon_assets.planning.rules.situation import Decision, Launch, Situation
from falcon_assets.planning.rules.waiting import (
    GIVEN_UP,
    NOT_READY,
    TAKEN,
    InputsMissing,
    NewerIsReady,
    NoFreeSlot,
    RerunPending,
    RetryDelayed,
    TurnPending,
    Waiting,
    gives_up,
)
from falcon_assets.planning.windows.instance_set import InstanceSet

CONSIDERED = 1000
"""How many pending instances a decision considers in the order of the workload, whatever they wait for.

Of the others it finds those that are ready, and the oldest that have waited too long; the rest is counted.
"""
LONGEST_LAUNCH = 100
"""How many instances one run may be given."""


def decide(situation: Situation) -> Decision:
    """Decides on every due instance that is neither settled nor in a run.

    What is ready starts, however many others wait; why they wait is said of :data:`CONSIDERED` of them.

    Raises:
        UnknownEntityError: a feed of a required input is not defined on the cluster.
        ExpressionError: an input window lies beyond the years 1 to 9999.
    """
    found = _Decider(situation)
    due = found.due()
    first_open = max(situation.first_open, situation.timeline.first)
    while first_open < due and found.is_settled(situation.timeline.instance(first_open)):
        first_open += 1
    again = [range(index, index + 1) for index in found.pending_before(min(first_open, due))]
    rest = found.consider_first([*again, range(min(first_open, due), due)])
    if rest:
        found.consider_ready(rest)
        found.give_up_oldest(rest)
    launches = found.launch()
    return Decision(
        launches=tuple(launches),
        timed_out=tuple(found.timed_out),
        skipped=tuple(found.skipped),
        waiting=found.waiting,
        first_open=first_open,
        wake_at=found.wake_at(due),
        retry_at=min(found.retries, default=None),
        further=found.count_further(launches, rest),
    )


@dataclass
class _Decider:
    """A decision, while it is being made."""

    at: Situation
    ready: list[tuple[int, datetime]] = field(default_factory=list)
    timed_out: list[tuple[datetime, Reason]] = field(default_factory=list)
    skipped: list[tuple[datetime, Reason]] = field(default_factory=list)
    waiting: dict[datetime, Reason] = field(default_factory=dict)
    alarms: set[datetime] = field(default_factory=set)
    retries: set[datetime] = field(default_factory=set)
    available: Mapping[str, InstanceSet] = field(init=False)

    def __post_init__(self) -> None:
        at = self.at
        self.available = {feed: InstanceSet.of(there) for feed, there in at.available.items()}
        if at.requests or any(self.available[feed] is not there for feed, there in at.available.items()):
            pending = ((T, at.records.get(T) or InstanceRecord(T, InstanceState.WAITING)) for T in at.requests)
            records = {**at.records, **{T: reopened(at.requests[T], record) for T, record in pending}}
            self.at = replace(at, records=records, available=self.available)

    @property
    def is_fifo(self) -> bool:
        """Whether the oldest go first."""
        return self.at.workload.order == "FIFO"

    def due(self) -> int:
        """How many instances of the timeline are due."""
        at = self.at
        now = at.now - at.workload.delay
        horizon = now if at.until is None else min(now, at.until)
        return at.timeline.indexes(at.timeline.start, horizon).stop

    def is_settled(self, nominal: datetime) -> bool:
        record = self.at.records.get(nominal)
        return record is not None and settled(record, self.at.workload.retry)

    def pending_before(self, first_open: int) -> list[int]:
        """Indexes of older instances that are pending again: reruns, and what a person ran and failed."""
        timeline = self.at.timeline
        if first_open <= 0:
            return []
        first = timeline.instance(first_open)
        again = [T for T in self.at.records if first > T and not self.is_settled(T) and timeline.contains(T)]
        return sorted(map(timeline.index_at_or_before, again))

    def consider_first(self, spans: Sequence[range]) -> list[range]:
        """Considers the first of the pending instances; those after them, in rising order, are the answer."""
        for considered, (index, nominal) in enumerate(self._pending(spans, self.is_fifo)):
            if considered == CONSIDERED:
                return [left for span in spans if (left := self._from(index, span))]
            self.consider(index, nominal)
        return []

    def consider_ready(self, rest: Sequence[range]) -> None:
        """Considers those of the others that have all their inputs, as many as may start."""
        at = self.at
        drops = at.workload.order == "LAST_ONLY"
        room = at.budget if at.at_once > at.slots_in_use else 0
        if at.since is None or not (drops or len(self.ready) < room):
            return
        for index, nominal in self._pending(at.readiness.ready(rest, self.available), self.is_fifo):
            self.consider(index, nominal)
            if len(self.ready) >= room and not drops:
                return

    def give_up_oldest(self, rest: Sequence[range]) -> None:
        """Gives up those of the others that have waited too long: the oldest have waited longest."""
        at = self.at
        if at.since is None:
            return
        last = at.timeline.instance(rest[-1].stop - 1)
        for nominal, record in at.records.items():
            if nominal <= last and at.timeline.contains(nominal):
                self._note(RetryDelayed.find(at, nominal, record))
        for _, nominal in islice(self._pending(rest, oldest_first=True), CONSIDERED):
            if len(self.timed_out) >= CONSIDERED:
                return
            known = at.records.get(nominal)
            over = gives_up(at, nominal, known)
            missing = InputsMissing.find(at, nominal, known) if over <= at.now else None
            if missing:
                self._lacks(nominal, missing)
            elif over > at.now:
                self.alarms.add(over)
                if known is None:
                    return  # what is younger, or is tried again, waits longer

    def count_further(self, launches: Iterable[Launch], rest: Sequence[range]) -> int:
        """How many pending instances wait of which nothing was said."""
        if not rest:
            return 0
        timeline = self.at.timeline
        said = {*self.waiting, *(nominal for launch in launches for nominal in launch.nominals)}
        said.update(nominal for nominal, _ in (*self.timed_out, *self.skipped))
        ends = [(timeline.instance(span.start), timeline.instance(span.stop - 1)) for span in rest]
        known = said.union(filter(self.is_settled, self.at.records))
        inside = sum(1 for T in known if any(first <= T <= last for first, last in ends) and timeline.contains(T))
        return sum(map(len, rest)) - inside

    def _pending(self, spans: Sequence[range], oldest_first: bool) -> Iterator[tuple[int, datetime]]:
        """The pending instances of some; those in a run or suspended get their reason here."""
        in_order = chain(*spans) if oldest_first else chain(*(reversed(span) for span in reversed(spans)))
        before = None
        for index in in_order:
            nominal = self.at.timeline.instance(index)
            # A day that a zone left out makes two neighbours one: see Timeline.
            if nominal == before or self.is_settled(nominal):
                continue
            before = nominal
            reason = _first(TAKEN, self.at, nominal)
            if reason:
                self.waiting[nominal] = reason
            else:
                yield index, nominal

    def consider(self, index: int, nominal: datetime) -> None:
        """Finds out what is to be said about a pending instance."""
        reason = _first(NOT_READY, self.at, nominal)
        self._note(reason)
        if reason is None:
            self.ready.append((index, nominal))
        elif isinstance(reason, InputsMissing):
            self._lacks(nominal, reason)
        else:
            self.waiting[nominal] = reason

    def launch(self) -> list[Launch]:
        """Shares the free slots out among stretches of ready instances."""
        at, ready = self.at, self.ready
        first_runs = [one for one in ready if one[1] not in at.requests]
        if at.workload.order == "LAST_ONLY" and first_runs:
            newer = NewerIsReady(first_runs[0][1])
            self.skipped += [(nominal, newer) for _, nominal in first_runs[1:]]
            # What has run before is asked for by name: it is neither too old nor in the way of others.
            ready = [one for one in ready if one is first_runs[0] or one[1] in at.requests]
        free, budget, taken = at.at_once - at.slots_in_use, at.budget, 0
        launches = []
        while taken < len(ready) and free > 0 and budget > 0:
            longest = min(LONGEST_LAUNCH, budget)
            stretch = self._stretch(ready, taken, longest)
            taken += len(stretch)
            slots = min(free, len(stretch))
            if at.chain:  # in a run they go one after the other
                stretch, slots = [*stretch, *self._following(at.chain, stretch, longest)], 1
            launches.append(Launch(tuple(sorted(stretch)), slots, self._is_late(stretch[0])))
            free -= slots
            budget -= len(stretch)
        reason: Reason = NoFreeSlot(at.workload.parallel, at.at_once < at.workload.parallel)
        if free > 0:
            reason = TurnPending(at.budget)
        for _, nominal in ready[taken:]:
            self.waiting[nominal] = reason
        return launches

    def wake_at(self, due: int) -> datetime | None:
        """The earliest of the alarms and the next instance to become due."""
        at = self.at
        if at.since is None:
            return None
        index = max(due, at.timeline.first)
        following = {at.timeline.instance(index)} if index < at.timeline.count else set()
        wanted = {T for T in following if at.until is None or at.until >= T}
        return min(self.alarms | {later(T, at.workload.delay) for T in wanted}, default=None)

    def _is_late(self, nominal: datetime) -> bool:
        request = self.at.requests.get(nominal)
        return request is not None and request.kind == LATE

    def _stretch(self, ready: list[tuple[int, datetime]], first: int, longest: int) -> list[datetime]:
        """The instances from ``first`` on that are neighbours in the timeline, all of them late reruns or none."""
        last, late = first, self._is_late(ready[first][1])
        while (
            last + 1 < min(len(ready), first + longest)
            and abs(ready[last + 1][0] - ready[last][0]) == 1
            and self._is_late(ready[last + 1][1]) is late
        ):
            last += 1
        return [nominal for _, nominal in ready[first : last + 1]]

    def _following(self, chain: OwnChain, stretch: Sequence[datetime], longest: int) -> list[datetime]:
        """The instances after a stretch that are ready once those before them in the run are done."""
        at, found = self.at, list[datetime]()
        said = {nominal for _, nominal in self.ready} | {nominal for nominal, _ in self.timed_out}
        written = chain.written(stretch)
        first = at.timeline.index_at_or_before(max(stretch)) + 1
        for nominal in map(at.timeline.instance, range(first, min(self.due(), first + longest - len(stretch)))):
            if nominal in said or nominal in at.requests or self.is_settled(nominal) or _first(TAKEN, at, nominal):
                break
            retry = RetryDelayed.find(at, nominal, at.records.get(nominal))
            self._note(retry)
            if retry or not chain.may_follow(nominal, written, at.available):
                break
            if RerunPending.find(at, nominal, None):
                break
            written |= chain.written([nominal])
            found.append(nominal)
            self.waiting.pop(nominal, None)
        return found

    def _note(self, reason: Waiting | None) -> None:
        """Somebody may want to know when an instance is tried again, while that lies ahead."""
        if isinstance(reason, RetryDelayed):
            self.alarms.add(reason.until)
            self.retries.add(reason.until)

    def _lacks(self, nominal: datetime, missing: InputsMissing) -> None:
        """Says of an instance without its inputs whether it goes on waiting."""
        over = next((found for rule in GIVEN_UP if (found := rule.find(self.at, nominal, missing))), None)
        if over:
            self.timed_out.append((nominal, over))
            return
        self.waiting[nominal] = missing
        if missing.until:
            self.alarms.add(missing.until)

    def _from(self, index: int, span: range) -> range:
        """What is left of a span in the order of the workload, from an index on."""
        if self.is_fifo:
            return range(max(span.start, index), span.stop)
        return range(span.start, min(span.stop, index + 1))


def _first(rules: Sequence[type[Waiting]], at: Situation, nominal: datetime) -> Waiting | None:
    """The first of the reasons for which an instance waits."""
    record = at.records.get(nominal)
    for rule in rules:  # a generator would take a fifth longer, and this is asked a thousand times in a tick
        found = rule.find(at, nominal, record)
        if found:
            return found
    return None
