"""What to do about the instances of a process now: run, skip, give up or go on waiting (source: Falcon's coordinator).

Nothing here acts: one look at a situation gives one decision, and the same situation always gives the same one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice

from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.planning.instances.instance_record import LATE, InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.replication.replication_process import delay_of
from falcon_assets.planning.rules.own_outputs import OwnChain
from falcon_assets.planning.rules.pending_reruns import RerunHolds
from falcon_assets.planning.rules.readiness import Readiness
from falcon_assets.planning.rules.retries import (
    gives_up_at,
    later,
    opens_at,
    reopened,
    settled,
    timeout_of,
    timeout_text,
)
from falcon_assets.planning.time.clock import is_set_back
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.planning.windows.instance_set import InstanceSet

__all__ = ["Decision", "Launch", "Situation", "decide", "opens_at", "settled", "timeout_of"]

LOOKED_AT = 1000
"""How many pending instances one look considers in the order of the process, whatever they wait for.

Of the others it finds those that are ready, and the oldest that have waited too long; the rest is counted.
"""
LONGEST_LAUNCH = 100
"""How many instances one run may be given."""


@dataclass(frozen=True)
class Situation:
    """Everything that a decision depends on; all times on the falcon clock, in UTC.

    Attributes:
        process: The process.
        timeline: Its nominal times on the cluster.
        readiness: What tells which inputs are missing there.
        now: The time.
        until: No instance after it is due; None: no such limit.
        since: When the process last became RUNNING (scheduled or resumed); None: it is not RUNNING.
        first_open: Index in the timeline; everything before it is settled, but for what ``records`` and ``requests``
            say of it.
        records: What is known, by nominal time: about instances from ``first_open`` on, about those before it that are
            not settled, and about those in ``requests``.
        at_once: How many of its instances may run at once.
        slots_in_use: How many of these slots runs hold.
        available: The available instances by the name of the feed; sets, for speed.
        budget: How many instances may be launched at most.
        requests: The requests to rerun instances that are alive, by nominal time.
        holds: What reruns of other processes are about to replace: instances that read it wait for them.
        evicted: By the name of the feed: its instances that retention took away, and when; nobody waits for them.
    """

    process: Process
    timeline: Timeline
    readiness: Readiness
    now: datetime
    until: datetime | None
    since: datetime | None
    first_open: int
    records: Mapping[datetime, InstanceRecord]
    at_once: int
    slots_in_use: int
    available: Mapping[str, Collection[datetime]]
    budget: int = 100
    requests: Mapping[datetime, RerunRequest] = field(default_factory=dict)
    holds: RerunHolds = field(default_factory=RerunHolds)
    evicted: Mapping[str, Mapping[datetime, datetime]] = field(default_factory=dict)


@dataclass(frozen=True)
class Launch:
    """One run to start.

    Attributes:
        nominals: Neighbours in the timeline, oldest first.
        slots: How many of them may run at once.
        late: Whether it runs them again because of late data.
    """

    nominals: tuple[datetime, ...]
    slots: int
    late: bool = False


@dataclass(frozen=True)
class Decision:
    """What to do now; instances are named by their nominal times, in the order of the process.

    Attributes:
        launches: Runs to start.
        timed_out: Instances that have waited too long for inputs, or wait for what was evicted, each with the reason.
        skipped: Instances that will not run because a newer one does, each with the reason.
        waiting: Why the others that were looked at do not start now.
        first_open: Index of the first instance that the records do not say to be settled.
        wake_at: The earliest time after ``now`` at which the clock alone changes something; None: never.
        retry_at: The earliest time after ``now`` at which a failed instance may be tried again; None: none waits.
        further: How many others wait of which nothing more is said, because there are too many.
    """

    launches: tuple[Launch, ...]
    timed_out: tuple[tuple[datetime, str], ...]
    skipped: tuple[tuple[datetime, str], ...]
    waiting: Mapping[datetime, str]
    first_open: int
    wake_at: datetime | None
    retry_at: datetime | None = None
    further: int = 0


def decide(situation: Situation) -> Decision:
    """Decides on every due instance that is neither settled nor in a run.

    What is ready starts, however many others wait; why they wait is said of :data:`LOOKED_AT` of them.

    Raises:
        UnknownEntityError: a feed of a required input is not defined on the cluster.
        ExpressionError: an input window lies beyond the years 1 to 9999.
    """
    look = _Look(situation)
    due = look.due()
    first_open = max(situation.first_open, situation.timeline.first)
    while first_open < due and look.is_settled(situation.timeline.instance(first_open)):
        first_open += 1
    again = [range(index, index + 1) for index in look.pending_before(min(first_open, due))]
    rest = look.consider_first([*again, range(min(first_open, due), due)])
    if rest:
        look.consider_ready(rest)
        look.give_up_oldest(rest)
    launches = look.launch()
    return Decision(
        launches=tuple(launches),
        timed_out=tuple(look.timed_out),
        skipped=tuple(look.skipped),
        waiting=look.waiting,
        first_open=first_open,
        wake_at=look.wake_at(due),
        retry_at=min(look.retries, default=None),
        further=look.count_further(launches, rest),
    )


@dataclass
class _Look:
    """One look at a situation, while it is being made."""

    at: Situation
    ready: list[tuple[int, datetime]] = field(default_factory=list)
    timed_out: list[tuple[datetime, str]] = field(default_factory=list)
    skipped: list[tuple[datetime, str]] = field(default_factory=list)
    waiting: dict[datetime, str] = field(default_factory=dict)
    alarms: set[datetime] = field(default_factory=set)
    retries: set[datetime] = field(default_factory=set)
    records: Mapping[datetime, InstanceRecord] = field(init=False)
    available: Mapping[str, InstanceSet] = field(init=False)
    chain: OwnChain | None = field(init=False)

    def __post_init__(self) -> None:
        at = self.at
        self.chain = OwnChain.of(at.readiness)
        self.available = {feed: InstanceSet.of(there) for feed, there in at.available.items()}
        pending = ((T, at.records.get(T) or InstanceRecord(T, InstanceState.WAITING)) for T in at.requests)
        self.records = {**at.records, **{T: reopened(at.requests[T], record) for T, record in pending}}

    @property
    def is_fifo(self) -> bool:
        """Whether the oldest go first."""
        return self.at.process.order == "FIFO"

    def due(self) -> int:
        """How many instances of the timeline are due."""
        at = self.at
        now = at.now - delay_of(at.process)
        horizon = now if at.until is None else min(now, at.until)
        return at.timeline.indexes(at.timeline.start, horizon).stop

    def is_settled(self, nominal: datetime) -> bool:
        record = self.records.get(nominal)
        return record is not None and settled(record, self.at.process)

    def pending_before(self, first_open: int) -> list[int]:
        """Indexes of older instances that are pending again: reruns, and what a person ran and failed."""
        timeline = self.at.timeline
        if first_open <= 0:
            return []
        first = timeline.instance(first_open)
        again = [T for T in self.records if first > T and not self.is_settled(T) and timeline.contains(T)]
        return sorted(map(timeline.index_at_or_before, again))

    def consider_first(self, spans: Sequence[range]) -> list[range]:
        """Considers the first of the pending instances; those after them, in rising order, are the answer."""
        for looked_at, (index, nominal) in enumerate(self._pending(spans, self.is_fifo)):
            if looked_at == LOOKED_AT:
                return [left for span in spans if (left := self._from(index, span))]
            self.consider(index, nominal)
        return []

    def consider_ready(self, rest: Sequence[range]) -> None:
        """Considers those of the others that have all their inputs, as many as may start."""
        at = self.at
        drops = at.process.order == "LAST_ONLY"
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
        for nominal, record in self.records.items():
            if nominal <= last and at.timeline.contains(nominal):
                self._opens(record)
        for _, nominal in islice(self._pending(rest, oldest_first=True), LOOKED_AT):
            if len(self.timed_out) >= LOOKED_AT:
                return
            known = self.records.get(nominal)
            opens = self._opens(known) if known else None
            gives_up = self._gives_up_at(nominal, opens)
            missing = at.readiness.missing(nominal, self.available) if gives_up <= at.now else []
            if missing:
                self._lacks(nominal, missing, opens)
            elif gives_up > at.now:
                self.alarms.add(gives_up)
                if known is None:
                    return  # what is younger, or is tried again, waits longer

    def count_further(self, launches: Iterable[Launch], rest: Sequence[range]) -> int:
        """How many pending instances wait of which nothing was said."""
        timeline = self.at.timeline
        said = {*self.waiting, *(nominal for launch in launches for nominal in launch.nominals)}
        said.update(nominal for nominal, _ in (*self.timed_out, *self.skipped))
        ends = [(timeline.instance(span.start), timeline.instance(span.stop - 1)) for span in rest]
        known = said.union(filter(self.is_settled, self.records)) if rest else ()
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
            reason = self._held(self.records.get(nominal))
            if reason:
                self.waiting[nominal] = reason
            else:
                yield index, nominal

    def consider(self, index: int, nominal: datetime) -> None:
        """Finds out what is to be said about one pending instance."""
        at, record = self.at, self.records.get(nominal)
        if at.since is None:
            self.waiting[nominal] = "process is suspended"
            return
        opens = self._opens(record) if record else None
        if record and opens and opens > at.now:
            outcome = "timed out" if record.state is InstanceState.TIMED_OUT else "failed"
            self.waiting[nominal] = f"is tried again at {format_instant(opens)} (attempt {record.attempt} {outcome})"
            return
        missing = at.readiness.missing(nominal, self.available)
        if missing:
            self._lacks(nominal, missing, opens)
            return
        held = at.holds.reason(at.process, at.readiness.cluster_name, at.readiness.feeds, nominal, self.available)
        if held:
            self.waiting[nominal] = held
        else:
            self.ready.append((index, nominal))

    def launch(self) -> list[Launch]:
        """Shares the free slots out among stretches of ready instances."""
        at, ready = self.at, self.ready
        first_runs = [one for one in ready if one[1] not in at.requests]
        if at.process.order == "LAST_ONLY" and first_runs:
            newest = format_instant(first_runs[0][1])
            self.skipped += [(nominal, f"LAST_ONLY: {newest} is newer") for _, nominal in first_runs[1:]]
            # What has run before is asked for by name: it is neither too old nor in the way of others.
            ready = [one for one in ready if one is first_runs[0] or one[1] in at.requests]
        free, budget, taken = at.at_once - at.slots_in_use, at.budget, 0
        launches = []
        while taken < len(ready) and free > 0 and budget > 0:
            longest = min(LONGEST_LAUNCH, budget)
            stretch = self._stretch(ready, taken, longest)
            taken += len(stretch)
            slots = min(free, len(stretch))
            if self.chain:  # in a run they go one after the other
                stretch, slots = [*stretch, *self._following(self.chain, stretch, longest)], 1
            launches.append(Launch(tuple(sorted(stretch)), slots, self._is_late(stretch[0])))
            free -= slots
            budget -= len(stretch)
        reason = f"waits for a free slot (parallel: {at.process.parallel})"
        if at.at_once < at.process.parallel:
            reason = "waits for a free slot (one at a time: several instances write one output instance)"
        if free > 0:
            reason = f"waits for its turn (at most {at.budget} instances are launched at once)"
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
        return min(self.alarms | {later(T, delay_of(at.process)) for T in wanted}, default=None)

    def _held(self, record: InstanceRecord | None) -> str:
        if record is None:
            return ""
        if record.in_flight:
            return f"is in run {record.queued_run or record.run_id}"
        return "is suspended" if record.state is InstanceState.SUSPENDED else ""

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
            record = self.records.get(nominal)
            opens = self._opens(record) if record else None
            if nominal in said or nominal in at.requests or self.is_settled(nominal) or self._held(record):
                break
            if (opens and opens > at.now) or not chain.may_follow(nominal, written, self.available):
                break
            feeds = at.readiness.feeds
            if at.holds.reason(at.process, at.readiness.cluster_name, feeds, nominal, self.available):
                break
            written |= chain.written([nominal])
            found.append(nominal)
            self.waiting.pop(nominal, None)
        return found

    def _opens(self, record: InstanceRecord) -> datetime | None:
        """When the instance is tried again: somebody may want to know while that lies ahead."""
        opens = opens_at(record, self.at.process)
        if record.ended and is_set_back(record.ended, self.at.now):
            return None  # it would be tried again when that time has come once more
        if opens and opens > self.at.now:
            self.alarms.add(opens)
            self.retries.add(opens)
        return opens

    def _lacks(self, nominal: datetime, missing: Sequence[str], opens: datetime | None) -> None:
        """Says of an instance without its inputs whether it goes on waiting."""
        at = self.at
        gone = at.readiness.evicted(nominal, self.available, at.evicted)
        if gone:
            self.timed_out.append((nominal, f"does not wait: {gone}"))
            return
        gives_up = self._gives_up_at(nominal, opens)
        if self.chain and self.chain.waits_for_own(nominal, self.available):
            # Its turn has not come: however long those before it take, nothing is wrong with it.
            self.waiting[nominal] = f"waits for {', '.join(missing)}"
        elif at.now >= gives_up:
            self.timed_out.append((nominal, f"missing after {timeout_text(at.process)}: {', '.join(missing)}"))
        else:
            self.alarms.add(gives_up)
            self.waiting[nominal] = f"waits for {', '.join(missing)}"

    def _gives_up_at(self, nominal: datetime, opens: datetime | None) -> datetime:
        at = self.at
        asked = at.requests[nominal].requested_at if nominal in at.requests else nominal
        due_at = later(nominal, delay_of(at.process))
        return gives_up_at(max(due_at, at.since or nominal, opens or nominal, asked), at.process)

    def _from(self, index: int, span: range) -> range:
        """What is left of a span in the order of the process, from an index on."""
        if self.is_fifo:
            return range(max(span.start, index), span.stop)
        return range(span.start, min(span.stop, index + 1))
