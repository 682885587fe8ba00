"""The search for causes: from an instance to what it lacks and to what brings that, in steps over many instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from falcon_assets.errors import FalconError
from falcon_assets.features.triage import fixes
from falcon_assets.features.triage.fixes import Fix
from falcon_assets.features.triage.known import Answers, Data, Entities, Landing, Obstacle, Work
from falcon_assets.features.triage.needs import Needs, needs_of
from falcon_assets.features.triage.reasons import (
    DataEvicted,
    Failed,
    GoesOn,
    Incomplete,
    MadeBy,
    NotArrived,
    NotMade,
    NotRecorded,
    NotRefreshed,
    OfAnotherColo,
    Stopped,
    TimedOut,
    TriedAgain,
)
from falcon_assets.instances.rules.waiting import (
    InputInvalid,
    InputsMissing,
    InputUnchecked,
    InstanceSuspended,
    ProcessSuspended,
)
from falcon_assets.model.feed import Feed
from falcon_assets.planning.clock import later
from falcon_assets.planning.instance_record import FeedState, InstanceRecord, InstanceState, KnownFeedInstance
from falcon_assets.planning.reasons import (
    NewerIsDelivered,
    NewerIsWritten,
    NotScheduled,
    Reason,
    SeenSource,
    TimePending,
    Undecidable,
)
from falcon_assets.planning.retries import KnownInstance, opens_at, reopened
from falcon_assets.planning.rollups import members_of
from falcon_assets.planning.workloads import Workload
from falcon_assets.planning.writers import makers

MISSING = FeedState.MISSING.value
DEEPEST = 300
"""Steps of a search; a chain of instances of one process counts as one."""
WIDEST = 2_000
_NAMED = 3
_OF_AN_INPUT = 200


@dataclass(frozen=True)
class Finding:
    """The result for an instance; ``reason`` is None where it exists.

    Attributes:
        fix: None: it needs none, or what it lacks does.
        between: Instances of its own process that are left out between it and ``works``.
        further: Missing instances that are not searched.
    """

    state: str
    reason: Reason | None = None
    fix: Fix | None = None
    works: tuple[Work, ...] = ()
    data: tuple[Data, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    record: InstanceRecord | None = None
    between: int = 0
    further: int = 0


@dataclass
class Search:
    """A search and its findings by instance; ``now`` is on the falcon clock."""

    entities: Entities
    answers: Answers
    now: datetime
    works: dict[Work, Finding] = field(default_factory=dict)
    data: dict[Data, Finding] = field(default_factory=dict)
    _known: dict[Data, KnownFeedInstance] = field(default_factory=dict)
    _asked: set[Data] = field(default_factory=set)

    def run(self, works: Iterable[Work], data: Iterable[Data]) -> None:
        """Searches from these instances until everything is found or a limit is reached."""
        wanted = [*works, *(one for of_data in self._find_data(list(data)) for one in self.data[of_data].works)]
        for _ in range(DEEPEST):
            if not wanted:
                return
            self._step(wanted[:WIDEST])
            self._leave(wanted[WIDEST:])
            lacking = dict.fromkeys(one for work in wanted for one in self.works[work].data)
            found = self._find_data([one for one in lacking if one not in self.data])
            following = dict.fromkeys(one for work in wanted for one in self.works[work].works)
            following |= dict.fromkeys(one for of_data in (*lacking, *found) for one in self.data[of_data].works)
            wanted = [one for one in following if one not in self.works]
        self._leave(wanted)

    def _leave(self, works: Iterable[Work]) -> None:
        self.works.update((one, Finding(InstanceState.WAITING.value, GoesOn())) for one in works)

    def _step(self, works: Sequence[Work]) -> None:
        known = self.answers.instances(works)
        waiting: dict[Work, tuple[InstanceRecord, Workload]] = {}
        for work in works:
            found = self._begun(work, known[work])
            if isinstance(found, Finding):
                self.works[work] = found
            else:
                waiting[work] = found
        needs: dict[Work, Needs] = {}
        for work, (record, workload) in waiting.items():
            try:
                is_asked_for = known[work].is_asked_for(workload.retry)
                needs[work] = needs_of(work, workload, self.answers, is_asked_for=is_asked_for)
            except FalconError as error:
                self.works[work] = Finding(record.state.value, Undecidable(str(error)), record=record)
        self._ask(one for need in needs.values() for one, _ in need.inputs)
        for work, need in needs.items():
            record = waiting[work][0]
            try:
                self.works[work] = self._waiting(work, *waiting[work], need)
            except FalconError as error:
                self.works[work] = Finding(record.state.value, Undecidable(str(error)), record=record)

    def _ask(self, data: Iterable[Data]) -> None:
        asked = [one for one in dict.fromkeys(data) if one not in self._asked]
        self._known.update(self.answers.feed_instances(asked) if asked else {})
        self._asked.update(asked)

    def _is_there(self, data: Data) -> bool:
        known = self._known.get(data)
        return known is not None and known.state is FeedState.AVAILABLE

    def _begun(self, work: Work, known: KnownInstance) -> Finding | tuple[InstanceRecord, Workload]:
        """Returns the finding for a state that does not depend on inputs; else the record to judge."""
        workload = self.entities.workload(work.workload, work.cluster)
        record, state = known.record, known.record.state
        if workload is None or not workload.timeline.contains(work.nominal):
            return Finding(state.value, Undecidable("there is no such instance any more"), record=record)
        if known.request is not None and known.is_asked_for(workload.retry):
            record = reopened(known.request, record)
        if record.in_flight:
            said, in_run, obstacles = self.answers.run(work, record)
            return Finding(said, in_run, obstacles=obstacles, record=record)
        error, state, opens = first_line(record.reason), record.state, opens_at(record, workload.retry)
        reason: Reason | None = None
        fix = None
        if state is InstanceState.SUCCEEDED:
            return Finding(state.value, record=record)
        if state is InstanceState.SUSPENDED:
            reason, fix = InstanceSuspended(), fixes.resume_instance(work)
        elif opens is not None and opens > self.now:
            reason, fix = TriedAgain(error, record.attempt, opens), fixes.rerun(work, state)  # without that wait
        elif state is InstanceState.FAILED and opens is None:
            reason, fix = Failed(error, record.attempt), fixes.rerun(work, state)
        elif state in (InstanceState.KILLED, InstanceState.SKIPPED):
            reason = Stopped(error or f"was {state.value.lower()}")
            fix = None if _is_replaced(record) else fixes.rerun(work, state)
        elif (due := workload.due(work.nominal)) > self.now:
            reason = TimePending(due)
        return Finding(state.value, reason, fix, record=record) if reason else (record, workload)

    def _waiting(self, work: Work, record: InstanceRecord, workload: Workload, need: Needs) -> Finding:
        lacking = [(data, missing) for data, missing in need.inputs if not self._is_there(data)]
        inputs = [missing for _, missing in lacking]
        lacks = bool(inputs or need.works or need.unnamed)
        is_scheduled = self.answers.is_scheduled(workload)
        reason: Reason
        fix, obstacles = None, tuple[Obstacle, ...]()
        if _is_replaced(record):
            reason = Stopped(first_line(record.reason))
        elif record.state is InstanceState.TIMED_OUT and opens_at(record, workload.retry) is None:
            reason, fix = TimedOut(first_line(record.reason), not lacks), fixes.rerun(work, record.state)
        elif is_scheduled is False:
            reason, fix = NotScheduled(workload.entity.name), fixes.schedule(workload.entity)
        elif is_scheduled is None:
            reason, fix = ProcessSuspended(), fixes.resume_entity(workload.entity)
        elif lacks:
            every = (*inputs, *need.unnamed, *need.own)
            reason = InputsMissing(every[:_NAMED], len(every[_NAMED:]), None)
        elif closed := self._closed(workload, need):
            reason, fix = closed, fixes.overrule(closed)
            obstacles = self.answers.not_checked(work.cluster) if isinstance(closed, InputUnchecked) else ()
        else:
            reason, obstacles = self.answers.not_started(work)
        data, further = self._looked_into([data for data, _ in lacking])
        details = (tuple(need.works), data, obstacles, record, need.between, further)
        return Finding(record.state.value, reason, fix, *details)

    def _closed(self, workload: Workload, need: Needs) -> Reason | None:
        """What is invalid counts before what is unchecked."""
        gated, known = {one.name for one in workload.gated}, self.answers.closed(workload) if workload.gated else {}
        found = [known[data] for data, of in need.inputs if of.input in gated and data in known]
        return next((one for one in found if isinstance(one, InputInvalid)), next(iter(found), None))

    def _looked_into(self, lacking: Sequence[Data]) -> tuple[tuple[Data, ...], int]:
        found: dict[tuple[str, str], list[Data]] = {}
        for one in dict.fromkeys(lacking):
            found.setdefault((one.feed, one.cluster), []).append(one)
        kept = [one for of_feed in found.values() for one in of_feed[:_OF_AN_INPUT]]
        return tuple(kept), sum(map(len, found.values())) - len(kept)

    def _find_data(self, data: Sequence[Data]) -> list[Data]:
        """Finds these, and the members that roll-ups among them lack, at any depth; returns all that it found."""
        found = list[Data]()
        while data:
            self._ask(data)
            self._find(data)
            found += data
            members = dict.fromkeys(member for one in data for member in self.data[one].data)
            data = [one for one in members if one not in self.data]
        return found

    def _find(self, data: Sequence[Data]) -> None:
        landing = []
        by_record = [one for one in data if self.entities.feeds[one.feed].is_taken_by_record and one not in self._known]
        withheld = self.answers.withheld([one for one in by_record if one.instance <= self.now]) if by_record else {}
        for one in data:
            known = self._known.get(one)
            if self._is_there(one):
                self.data[one] = Finding(FeedState.AVAILABLE.value)
                continue
            if one in withheld:
                self.data[one] = self._withheld(one, withheld[one])
                continue
            try:
                found = self._coming(one, known)
            except FalconError as error:
                found = Finding(MISSING, Undecidable(str(error)))
            if found is None:
                landing.append(one)
            else:
                self.data[one] = found
        there = self.answers.landings(landing) if landing else {}
        for one in landing:
            found = self._landing(one, self._known.get(one), there[one])
            self.data[one] = _of_source(found, there[one].source)

    def _withheld(self, one: Data, reason: Reason) -> Finding:
        members = [
            Data(member.feed.name, one.cluster, at)
            for member in members_of(self.entities.feeds[one.feed], one.cluster)
            if not member.is_optional
            for at in member.membership.members(one.instance)
        ]
        if not members:
            return Finding(MISSING, reason)
        self._ask(members)
        data, further = self._looked_into([member for member in members if not self._is_there(member)])
        obstacles = () if data else self.answers.not_recorded(one.cluster, "rollups")
        return Finding(MISSING, reason, data=data, further=further, obstacles=obstacles)

    def _coming(self, one: Data, known: KnownFeedInstance | None) -> Finding | None:
        bringing = [
            *self.entities.producers(one.feed, one.cluster),
            *self.entities.replications_to(one.feed, one.cluster),
        ]
        names = tuple(dict.fromkeys(workload.name for workload in bringing))
        if not bringing:
            return None
        works = tuple(
            Work(workload.name, workload.cluster, nominal)
            for workload, nominal in makers(bringing, one.feed, one.cluster, one.instance)
        )
        if known is not None:
            fix = fixes.rerun(works[0], InstanceState.SUCCEEDED) if works else None
            return Finding(known.state.value, DataEvicted(known.evicted_at), fix)
        if not works:
            return Finding(MISSING, NotMade(names))
        return Finding(MISSING, MadeBy(names), works=works)

    def _landing(self, one: Data, known: KnownFeedInstance | None, landing: Landing) -> Finding:
        feed, fix = self.entities.feeds[one.feed], fixes.collect(one)
        if one.instance > self.now:
            return Finding(FeedState.PENDING.value, TimePending(one.instance))
        late, by = overdue(feed, one.cluster, one.instance, self.now)
        # Where the store says that it is not there, nobody can record it.
        sensor = "source_collector" if landing.source else "collector"
        is_open = landing.is_there is None or landing.is_complete
        obstacles = self.answers.not_recorded(one.cluster, sensor) if is_open else ()
        if landing.is_complete:
            return Finding(MISSING, NotRecorded(landing.path), fix, obstacles=obstacles)
        if known is not None:
            return Finding(known.state.value, DataEvicted(known.evicted_at), fix)
        if landing.refreshed is not None:
            return Finding(MISSING, NotRefreshed(landing.path, landing.refreshed, one.instance, late, by), fix)
        if landing.is_there:
            return Finding(MISSING, Incomplete(landing.said, late, by), fix)
        problem = landing.said if landing.is_there is None else ""
        # To collect what cannot be looked at fixes nothing: the problem says what would.
        return Finding(
            MISSING, NotArrived(landing.path, late, by, problem), None if problem else fix, obstacles=obstacles
        )


def _of_source(found: Finding, source: SeenSource | None) -> Finding:
    """Nothing is to be collected by hand from there: what is copied is looked for in every tick."""
    if source is None or found.reason is None or isinstance(found.reason, TimePending):
        return found
    return replace(found, reason=OfAnotherColo(source, found.reason), fix=None)


def _is_replaced(record: InstanceRecord) -> bool:
    """Returns whether a later instance wrote the output: another run would have no effect."""
    is_over = record.state in (InstanceState.TIMED_OUT, InstanceState.SKIPPED)
    return is_over and any(one.is_in(record.reason_data) for one in (NewerIsWritten, NewerIsDelivered))


def overdue(feed: Feed, cluster: str, instance: datetime, now: datetime) -> tuple[timedelta | None, str]:
    """Returns the delay (None: it is not overdue), and the rule for it."""
    sla = feed.sla_on(cluster)
    if sla is None:
        return max(now - instance, timedelta()), "its nominal time"
    if now >= later(instance, sla.high.length):
        return now - later(instance, sla.high.length), f"its SLA (high: {sla.high})"
    if now >= later(instance, sla.low.length):
        return now - later(instance, sla.low.length), f"its SLA (low: {sla.low})"
    return None, f"its SLA (low: {sla.low})"


def first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
