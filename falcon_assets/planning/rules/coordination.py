"""What to do about the instances of a workload now: run, skip, give up or go on waiting (source: Falcon's coordinator).

Nothing here acts: the same situation always gives the same decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice

from falcon_assets.planning.instances.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.instances.reason import Reason
from falcon_assets.planning.rules.backlog import Backlog, first_reason
from falcon_assets.planning.rules.launches import launches, without_older
from falcon_assets.planning.rules.replaced_outputs import replaced_by
from falcon_assets.planning.rules.retries import later, reopened
from falcon_assets.planning.rules.situation import Decision, Situation
from falcon_assets.planning.rules.waiting import (
    GIVEN_UP,
    NOT_READY,
    InputsMissing,
    RetryDelayed,
    Waiting,
    gives_up,
)
from falcon_assets.planning.windows.instance_set import InstanceSet

CONSIDERED = 1000
"""How many pending instances a decision considers in the order of the workload, whatever they wait for.

Of the others it finds those that are ready, and the oldest that have waited too long; the rest is counted.
"""


def decide(situation: Situation) -> Decision:
    """Decides on every due instance that is neither settled nor in a run.

    What is ready starts, however many others wait; why they wait is said of :data:`CONSIDERED` of them.

    Raises:
        UnknownEntityError: a feed of a required input is not defined on the cluster.
        ExpressionError: an input window lies beyond the years 1 to 9999.
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
    """The same, with sets for what is available, and with the instances pending again that are asked for."""
    available = {feed: InstanceSet.of(there) for feed, there in at.available.items()}
    if not at.requests and all(available[feed] is there for feed, there in at.available.items()):
        return at
    pending = ((T, at.records.get(T) or InstanceRecord(T, InstanceState.WAITING)) for T in at.requests)
    records = {**at.records, **{T: reopened(at.requests[T], record) for T, record in pending}}
    return replace(at, records=records, available=available)


@dataclass
class _Decider:
    """A decision, while it is being made."""

    at: Situation
    backlog: Backlog
    ready: list[tuple[int, datetime]] = field(default_factory=list)
    timed_out: list[tuple[datetime, Reason]] = field(default_factory=list)
    replaced: list[tuple[datetime, Reason]] = field(default_factory=list)
    alarms: set[datetime] = field(default_factory=set)
    retries: set[datetime] = field(default_factory=set)

    def consider_first(self, spans: Sequence[range]) -> list[range]:
        """Considers the first of the pending instances; those after them, in rising order, are the answer."""
        for considered, (index, nominal) in enumerate(self.backlog.pending(spans, self.backlog.is_fifo)):
            if considered == CONSIDERED:
                return self.backlog.following(index, spans)
            self.consider(index, nominal)
        return []

    def consider_ready(self, rest: Sequence[range]) -> None:
        """Considers those of the others that have all their inputs, as many as may start."""
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
        """Gives up those of the others that have waited too long: the oldest have waited longest."""
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
        """Finds out what is to be said about a pending instance."""
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

    def wake_at(self) -> datetime | None:
        """The earliest of the alarms and the next instance to become due."""
        at = self.at
        if at.since is None:
            return None
        index = max(self.backlog.due, at.timeline.first)
        following = {at.timeline.instance(index)} if index < at.timeline.count else set()
        wanted = {T for T in following if at.until is None or at.until >= T}
        return min(self.alarms | {later(T, at.workload.delay) for T in wanted}, default=None)

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
        self.backlog.waiting[nominal] = missing
        if missing.until:
            self.alarms.add(missing.until)
