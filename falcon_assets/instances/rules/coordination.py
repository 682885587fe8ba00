"""Decides which ready instances start now: one run per stretch of neighbours, within slots and budget."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice
from typing import TypeAlias

from falcon_assets.instances.rules.backlog import Backlog, first_reason
from falcon_assets.instances.rules.executors import ExecutorChoice
from falcon_assets.instances.rules.own_outputs import OwnChain
from falcon_assets.instances.rules.replaced_outputs import replaced_by
from falcon_assets.instances.rules.situation import Decision, Situation
from falcon_assets.instances.rules.waiting import (
    GIVEN_UP,
    NOT_READY,
    TAKEN,
    InputInvalid,
    InputSkipped,
    InputsMissing,
    InputUnchecked,
    NewerIsReady,
    NoFreeSlot,
    OptionalInputPending,
    RerunPending,
    RetryDelayed,
    TurnPending,
    Waiting,
    gives_up,
)
from falcon_assets.planning.input_windows import InstanceSet
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, Launch
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.retries import reopened
from falcon_assets.planning.workloads import LONGEST_RUN

Ready: TypeAlias = Sequence[tuple[int, datetime]]
"""In the order of the workload: index in the timeline, and nominal time."""


def without_older(at: Situation, ready: Ready) -> tuple[Ready, list[tuple[datetime, Reason]]]:
    """For LAST_ONLY: splits off the older instances as skipped."""
    if at.workload.order != "LAST_ONLY":
        return ready, []
    first_runs = [one for one in ready if one[1] not in at.requests]
    if not first_runs:
        return ready, []
    newer = NewerIsReady(first_runs[0][1])
    # What has run before is asked for by name: it is neither too old nor in the way of others.
    left = [one for one in ready if one is first_runs[0] or one[1] in at.requests]
    return left, [(nominal, newer) for _, nominal in first_runs[1:]]


def launches(backlog: Backlog, ready: Ready, given_up: Collection[datetime]) -> list[Launch]:
    """Distributes the free slots among stretches; ``given_up`` must not run, even after others in the same run."""
    at = backlog.at
    ready = _without_rivals(backlog, ready)
    own, budget, taken = at.at_once - at.slots_in_use, at.budget, 0
    free, runs = (own, len(ready)) if at.admission is None else (min(own, at.admission.jobs), at.admission.runs)
    found: list[Launch] = []
    executors = at.executors
    while taken < len(ready) and free > 0 and budget > 0 and len(found) < runs:
        longest = min(LONGEST_RUN, budget)
        stretch = _stretch(at, ready, taken, longest)
        executor = executors.best(_failed_on(at, stretch)) if executors else None
        if executors and executor is None:
            break
        taken += len(stretch)
        slots = min(free, len(stretch), executor.free_jobs if executor else free)
        if at.chain and at.newer is None:  # in a run they go one after the other
            taboo = {*given_up, *(nominal for _, nominal in ready)}
            stretch, slots = [*stretch, *_following(backlog, at.chain, stretch, longest, taboo)], 1
            for nominal in stretch:
                backlog.waiting.pop(nominal, None)
        found.append(Launch(tuple(sorted(stretch)), slots, *_way(at, stretch[0]), executor.name if executor else ""))
        if executors and executor:
            executors = executors.with_run(executor.name, slots)
        free -= slots
        budget -= len(stretch)
    reason = _why_no_more(at, found, executors)
    for _, nominal in ready[taken:]:
        backlog.waiting[nominal] = reason
    return found


def _why_no_more(at: Situation, started: Sequence[Launch], executors: ExecutorChoice | None) -> Reason:
    """Why nothing more starts after these, when the executors are as they are with them."""
    slots, parallel = sum(one.slots for one in started), at.workload.parallel
    if at.slots_in_use + slots >= at.at_once:
        return NoFreeSlot(parallel, at.at_once < parallel)
    refusal = at.admission.with_more(slots, len(started)).refusal if at.admission else None
    return refusal or (executors.refusal if executors else None) or TurnPending(at.budget)


def _failed_on(at: Situation, stretch: Sequence[datetime]) -> set[str]:
    """Where these were tried last, and did not succeed: it may be the fault of the executor."""
    records = (at.records.get(nominal) for nominal in stretch)
    return {one.executor for one in records if one and one.executor and one.state is not InstanceState.SUCCEEDED}


def _without_rivals(backlog: Backlog, ready: Ready) -> Ready:
    at = backlog.at
    first = next((nominal for _, nominal in ready if nominal not in at.requests), None)
    if at.newer is None or first is None:
        return ready
    missing = tuple(at.newer.left_to(first))
    left = [one for one in ready if one[1] == first or one[1] in at.requests]
    for nominal in {nominal for _, nominal in ready} - {nominal for _, nominal in left}:
        over = gives_up(at, nominal, at.records.get(nominal))
        backlog.waiting[nominal] = InputsMissing(missing, 0, over)
    return left


def _way(at: Situation, nominal: datetime) -> tuple[bool, bool]:
    """Whether it is a late rerun, and whether it takes the present definition."""
    request = at.requests.get(nominal)
    return (request.is_late, request.use_latest) if request else (False, False)


def _stretch(at: Situation, ready: Ready, first: int, longest: int) -> list[datetime]:
    """Neighbours in the timeline that run the same way."""
    last, way = first, _way(at, ready[first][1])
    while (
        last + 1 < min(len(ready), first + longest)
        and abs(ready[last + 1][0] - ready[last][0]) == 1
        and _way(at, ready[last + 1][1]) == way
    ):
        last += 1
    return [nominal for _, nominal in ready[first : last + 1]]


def _following(
    backlog: Backlog, chain: OwnChain, stretch: Sequence[datetime], longest: int, taboo: Collection[datetime]
) -> Iterator[datetime]:
    at, written = backlog.at, chain.written(stretch)
    if any(one.feed in at.workload.own_feeds for one in at.workload.gated):
        return  # what one writes is checked before the next one reads it
    first = at.timeline.index_at_or_before(max(stretch)) + 1
    for nominal in map(at.timeline.instance, range(first, min(backlog.due, first + longest - len(stretch)))):
        if nominal in taboo or nominal in at.requests or backlog.is_settled(nominal):
            return
        if first_reason((*TAKEN, RetryDelayed), at, nominal) or not chain.may_follow(nominal, written, at.available):
            return
        if first_reason((RerunPending, OptionalInputPending, InputInvalid, InputUnchecked), at, nominal):
            return
        written |= chain.written([nominal])
        yield nominal


CONSIDERED = 1000
"""Pending instances considered in order; of the others only ready ones, and the oldest that waited too long."""


def decide(situation: Situation) -> Decision:
    """Decides on every due instance that is neither settled nor in a run; ready ones start, however many others wait.

    Raises UnknownEntityError and ExpressionError as :meth:`.Readiness.missing`.
    """
    at = _with_requests(situation)
    backlog = Backlog(at)
    found = _Decider(at, backlog)
    rest = found.consider_first(backlog.spans)
    if rest:
        found.consider_ready(rest)
        found.give_up_oldest(rest)
    given_up = [nominal for nominal, _ in (*found.timed_out, *found.replaced)]
    ready, skipped = without_older(at, found.ready)
    started = launches(backlog, ready, given_up)
    further = 0
    if rest:
        dropped, begun = (nominal for nominal, _ in skipped), (launch.nominals for launch in started)
        further = backlog.count(rest, chain(backlog.waiting, given_up, dropped, *begun))
    return Decision(
        launches=tuple(started),
        timed_out=tuple(found.timed_out),
        skipped=(*found.replaced, *skipped),
        waiting=backlog.waiting,
        first_open=backlog.first_open,
        wake_at=found.wake_at(),
        retry_at=min(found.retries, default=None),
        further=further,
    )


def _with_requests(at: Situation) -> Situation:
    """Converts to sets, and makes requested instances pending."""
    available = {feed: InstanceSet.of(there) for feed, there in at.available.items()}
    if not at.requests and all(available[feed] is there for feed, there in at.available.items()):
        return at
    pending = ((T, at.records.get(T) or InstanceRecord(T, InstanceState.WAITING)) for T in at.requests)
    records = {**at.records, **{T: reopened(at.requests[T], record) for T, record in pending}}
    return replace(at, records=records, available=available)


@dataclass
class _Decider:
    at: Situation
    backlog: Backlog
    ready: list[tuple[int, datetime]] = field(default_factory=list)
    timed_out: list[tuple[datetime, Reason]] = field(default_factory=list)
    replaced: list[tuple[datetime, Reason]] = field(default_factory=list)
    alarms: set[datetime] = field(default_factory=set)
    retries: set[datetime] = field(default_factory=set)

    def consider_first(self, spans: Sequence[range]) -> list[range]:
        """Returns the spans after the considered instances, in rising order."""
        for considered, (index, nominal) in enumerate(self.backlog.pending(spans, self.backlog.is_fifo)):
            if considered == CONSIDERED:
                return self.backlog.following(index, spans)
            self.consider(index, nominal)
        return []

    def consider_ready(self, rest: Sequence[range]) -> None:
        at = self.at
        drops = at.workload.order == "LAST_ONLY"
        room = at.budget if at.at_once > at.slots_in_use else 0
        if at.since is None or not (drops or len(self.ready) < room):
            return
        if at.newer and (at.newer.used or (self.ready and not drops)):
            return  # of those that use each version once only the first starts
        available = {feed: InstanceSet.of(there) for feed, there in at.available.items()}
        for index, nominal in self.backlog.pending(at.readiness.ready(rest, available), self.backlog.is_fifo):
            self.consider(index, nominal)
            if len(self.ready) >= room and not drops:
                return

    def give_up_oldest(self, rest: Sequence[range]) -> None:
        """The oldest have waited longest."""
        at = self.at
        if at.since is None:
            return
        last = at.timeline.instance(rest[-1].stop - 1)
        for nominal, record in at.records.items():
            if nominal <= last and at.timeline.contains(nominal):
                self._note(RetryDelayed.find(at, nominal, record))
        for _, nominal in islice(self.backlog.pending(rest, oldest_first=True), CONSIDERED):
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

    def consider(self, index: int, nominal: datetime) -> None:
        at = self.at
        newer = replaced_by(at.workload, nominal, at.newest_written) if at.newest_written else None
        if newer and at.since is not None:
            # What somebody asked for is over with that, as where its inputs were evicted.
            (self.timed_out if nominal in at.requests else self.replaced).append((nominal, newer))
            return
        reason = first_reason(NOT_READY, self.at, nominal)
        self._note(reason)
        if reason is None:
            self.ready.append((index, nominal))
        elif isinstance(reason, InputsMissing):
            self._lacks(nominal, reason)
        else:
            self.backlog.waiting[nominal] = reason
            if isinstance(reason, OptionalInputPending):
                self.alarms.add(reason.until(at, nominal, at.records.get(nominal)))

    def wake_at(self) -> datetime | None:
        at = self.at
        if at.since is None:
            return None
        index = max(self.backlog.due, at.timeline.first)
        following = {at.timeline.instance(index)} if index < at.timeline.count else set()
        wanted = {T for T in following if at.until is None or at.until >= T}
        return min(self.alarms | {at.workload.due(T) for T in wanted}, default=None)

    def _note(self, reason: Waiting | None) -> None:
        """A retry that lies ahead is an alarm."""
        if isinstance(reason, RetryDelayed):
            self.alarms.add(reason.until)
            self.retries.add(reason.until)

    def _lacks(self, nominal: datetime, missing: InputsMissing) -> None:
        """Decides whether an instance without its inputs continues to wait."""
        if dropped := InputSkipped.find(self.at, nominal):
            self.replaced.append((nominal, dropped))
            return
        over = next((found for rule in GIVEN_UP if (found := rule.find(self.at, nominal, missing))), None)
        if over:
            self.timed_out.append((nominal, over))
            return
        self.backlog.waiting[nominal] = missing
        if missing.until:
            self.alarms.add(missing.until)
