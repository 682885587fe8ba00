"""Breaches against an oracle that lives through every moment, and knows nothing of how they are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.sla.rules import (
    Deadline,
    Known,
    Scheduled,
    announced,
    breaches,
    feed_deadlines,
    process_deadlines,
    seen_until,
    to_judge,
)
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.sla import SlaLevel
from falcon_assets.planning.timeline import Timeline
from tests.builders import make_feed, make_process
from tests.hours import HOUR
from tests.properties import examples

START = datetime(2013, 3, 9, tzinfo=UTC)  # New York changes its clocks on the 10th
TOLERATED = timedelta(minutes=5)


def at(hours: float) -> datetime:
    return START + hours * HOUR


@dataclass(frozen=True)
class Instances:
    """A validity and steps in it."""

    steps: str
    zone: str
    hours: int

    @property
    def timeline(self) -> Timeline:
        return Timeline(START, at(self.hours), Frequency.parse(self.steps), self.zone)

    def all(self) -> Iterator[datetime]:
        """By the words of the design: the start and every step from it, before the end of the validity."""
        unit, count = self.steps.removesuffix(")").split("(")
        zone, number = ZoneInfo(self.zone), 0
        while True:
            if unit == "days":
                wall = START.astimezone(zone).replace(tzinfo=None) + timedelta(days=number * int(count))
                instance = wall.replace(tzinfo=zone).astimezone(UTC)
            else:
                instance = START + number * timedelta(**{unit: int(count)})
            if instance >= at(self.hours):
                return
            yield instance
            number += 1


@dataclass(frozen=True)
class Step:
    """From one evaluation to the next: the clock moves, and perhaps somebody suspends or resumes in between."""

    minutes: int
    toggled: float | None


class Oracle:
    """Goes along with the clock, and notes whose deadline passes while it is scheduled and not met."""

    def __init__(self, instances: Instances, limit: timedelta, met: dict[datetime, datetime]) -> None:
        self.instances, self.limit, self.met = list(instances.all()), limit, met
        self.since: datetime | None = START
        self.clock = START
        self.breached: set[datetime] = set()

    def live(self, until: datetime, toggled: datetime | None) -> None:
        if until < self.clock - TOLERATED:
            self.clock = until  # set back: what comes is lived through once more
        for instance in self.instances:
            deadline = instance + self.limit
            passed = self.clock <= deadline < until
            if passed and self.is_scheduled(deadline, until, toggled) and not self.in_time(instance):
                self.breached.add(instance)
        if toggled is not None:
            self.since = None if self.since is not None else toggled
        self.clock = max(self.clock, until)

    def is_scheduled(self, moment: datetime, until: datetime, toggled: datetime | None) -> bool:
        if self.since is None:
            return toggled is not None and toggled <= moment
        # Where the clock, set back, passes the time of the schedule again, nobody can tell that from the first time.
        # Whoever suspends it then does not even leave that time behind.
        again = toggled is None and self.clock <= self.since <= until and moment < self.since
        return not again and (toggled is None or moment < toggled)

    def in_time(self, instance: datetime) -> bool:
        met = self.met.get(instance)
        return met is not None and met <= instance + self.limit


@dataclass
class Evaluator:
    """Evaluates as a tick does, with what is known at that time."""

    deadline: Deadline
    met: dict[datetime, datetime]
    budget: int
    judged: datetime | None = None
    evaluated: datetime | None = None
    found: list[datetime] = field(default_factory=list)

    def evaluate(self, scheduled: Scheduled, now: datetime, seen: datetime | None = None) -> None:
        known = {one: Known(came, came) for one, came in self.met.items() if came <= (seen or now)}
        if self.evaluated is not None and self.evaluated - now > TOLERATED:
            self.judged, self.evaluated = None, now
        while True:
            part = to_judge(self.deadline, scheduled, self.judged, self.evaluated, now, self.budget, seen)
            self.found += [one.instance for one in breaches(self.deadline, part.indexes, known)]
            self.judged = part.judged or self.judged
            if len(part.indexes) < self.budget:
                break
        self.evaluated = max(now, self.evaluated or now)


instances = st.builds(
    Instances,
    st.sampled_from(["minutes(45)", "hours(1)", "hours(5)", "days(1)"]),
    st.sampled_from(["UTC", "America/New_York"]),
    st.integers(1, 96),
)
steps = st.lists(
    st.builds(
        Step,
        st.one_of(st.integers(0, 90), st.integers(-300, 1500)),
        st.one_of(st.none(), st.none(), st.floats(0, 1)),
    ),
    min_size=1,
    max_size=20,
)
delays = st.lists(st.one_of(st.none(), st.integers(0, 12 * 60)), min_size=1, max_size=12)


@given(instances, st.sampled_from(["minutes(10)", "hours(2)", "days(1)"]), delays, steps, st.integers(1, 5))
@examples(400)
def test_breaches_are_those_of_the_oracle(
    instances: Instances, limit: str, delays: list[int | None], steps: list[Step], budget: int
) -> None:
    """However the clock jumps, whatever is suspended and whenever it is evaluated; late data is late all the same."""
    length = Frequency.parse(limit).length
    met = {
        one: one + timedelta(minutes=delay)
        for place, one in enumerate(instances.all())
        if (delay := delays[place % len(delays)]) is not None
    }
    oracle = Oracle(instances, length, met)
    deadline = Deadline("feed", "raw", "primary", SlaLevel.LOW, length, length, instances.timeline)
    evaluator = Evaluator(deadline, met, budget)
    evaluator.evaluate(Scheduled(since=START), START)
    now, scheduled, latest = START, Scheduled(since=START), START
    for step in steps:
        # Somebody suspends while the clock goes on; not while it is set.
        after, toggled = now + timedelta(minutes=step.minutes), None
        if step.toggled is not None and after > oracle.clock and oracle.clock >= latest:
            toggled = oracle.clock + step.toggled * (after - oracle.clock)
            toggled = toggled.replace(microsecond=0)
            scheduled = Scheduled(until=toggled) if scheduled.since is not None else Scheduled(since=toggled)
        now = after
        oracle.live(now, toggled)
        evaluator.evaluate(scheduled, now)
    assert set(evaluator.found) == oracle.breached


@given(
    instances,
    st.sampled_from(["minutes(10)", "hours(2)", "days(1)"]),
    delays,
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 600)), min_size=1, max_size=20),
)
@examples(200)
def test_who_looks_rarely_is_believed_once_they_look(
    instances: Instances, limit: str, delays: list[int | None], ticks: list[tuple[int, int]]
) -> None:
    """Each tick knows what had come when somebody looked; at the end the breaches are those of who always looks."""
    length = Frequency.parse(limit).length
    met = {
        one: one + timedelta(minutes=delay)
        for place, one in enumerate(instances.all())
        if (delay := delays[place % len(delays)]) is not None
    }
    deadline = Deadline("feed", "raw", "primary", SlaLevel.LOW, length, length, instances.timeline)
    always, rarely = (Evaluator(deadline, met, 3) for _ in range(2))
    always.evaluate(Scheduled(since=START), START)
    rarely.evaluate(Scheduled(since=START), START)
    now = looked = START
    for pause, ago in [*ticks, (1, 0)]:
        now += timedelta(minutes=pause)
        looked = max(looked, now - timedelta(minutes=ago))
        always.evaluate(Scheduled(since=START), now)
        rarely.evaluate(Scheduled(since=START), now, looked)
        assert set(rarely.found) <= set(always.found)
    assert set(rarely.found) == set(always.found)


@pytest.mark.parametrize(
    ("looked", "is_starting", "until"),
    [
        pytest.param(9.99, False, 9.99, id="a moment ago"),
        pytest.param(None, True, 10, id="it is not looked for"),
        pytest.param(4, False, 10, id="nobody looks any more"),
        pytest.param(4, True, 4, id="nobody has looked yet"),
        pytest.param(11, False, 10, id="the clock was set back"),
    ],
)
def test_what_is_not_there_is_known_until_somebody_looked(
    looked: float | None, is_starting: bool, until: float
) -> None:
    assert seen_until(at(10), None if looked is None else at(looked), is_starting=is_starting) == at(until)


HOURLY = Instances("hours(1)", "UTC", 48).timeline


def deadline(limit: str = "hours(2)", level: SlaLevel = SlaLevel.LOW) -> Deadline:
    length = Frequency.parse(limit).length
    return Deadline("feed", "raw", "primary", level, length, length, HOURLY)


def hours_to_judge(
    scheduled: Scheduled, judged: float | None, evaluated: float | None, now: float, limit: str = "hours(2)"
) -> list[float]:
    judged_before, evaluated_before = (None if one is None else at(one) for one in (judged, evaluated))
    found = to_judge(deadline(limit), scheduled, judged_before, evaluated_before, at(now), 100)
    return [(HOURLY.instance(index) - START) / HOUR for index in found.indexes]


@pytest.mark.parametrize(
    ("scheduled", "judged", "evaluated", "now", "found"),
    [
        pytest.param(Scheduled(since=at(0)), 3, 5, 6.5, [3, 4], id="what has become due since"),
        pytest.param(Scheduled(since=at(0)), 3, 5, 6, [3], id="what comes at the very moment is in time"),
        pytest.param(
            Scheduled(since=at(0)), None, None, 4.5, [0, 1, 2], id="the first evaluation, from the schedule on"
        ),
        pytest.param(Scheduled(since=at(4)), None, None, 6.5, [2, 3, 4], id="not scheduled before"),
        pytest.param(Scheduled(since=at(0)), None, 40, 41.5, [38, 39], id="an SLA that is added later"),
        pytest.param(Scheduled(until=at(5)), 2, 4, 9, [2], id="suspended in between"),
        pytest.param(Scheduled(until=at(5)), None, None, 9, [], id="never scheduled"),
        pytest.param(Scheduled(since=at(8)), 3, 5, 9.5, [6, 7], id="resumed: what was due meanwhile was not expected"),
        pytest.param(Scheduled(since=at(20)), None, 10, 12.5, [8, 9, 10], id="the clock was set back before that"),
    ],
)
def test_what_is_judged(
    scheduled: Scheduled, judged: float | None, evaluated: float | None, now: float, found: list[float]
) -> None:
    assert hours_to_judge(scheduled, judged, evaluated, now) == found


def test_a_shorter_sla_holds_for_what_is_not_judged_yet() -> None:
    before = to_judge(deadline("hours(8)"), Scheduled(since=at(0)), None, None, at(10.5), 100)
    assert [HOURLY.instance(index) for index in before.indexes] == [at(0), at(1), at(2)]
    assert before.judged is not None
    shorter = to_judge(deadline("hours(1)"), Scheduled(since=at(0)), before.judged, at(10.5), at(10.6), 100)
    assert [HOURLY.instance(index) for index in shorter.indexes] == [at(one) for one in range(3, 10)]


def test_a_process_starts_and_ends_and_a_rerun_breaches_nothing() -> None:
    declared = make_process(sla={"should_start_in": "hours(1)", "should_end_in": "hours(2)"})
    assert declared.sla is not None
    start, end = process_deadlines("p", "primary", declared.sla, HOURLY)
    known = {
        at(0): Known(at(0.5), at(1.5)),
        at(1): Known(at(2.5), None),
        at(2): Known(at(2.5), at(5)),
        at(3): Known(None, None, expected=False),
    }
    found = {level.level.value: [one.instance for one in breaches(level, range(5), known)] for level in (start, end)}
    assert found == {"should_start_in": [at(1), at(4)], "should_end_in": [at(1), at(2), at(4)]}
    assert [one.met_at for one in breaches(end, range(2, 3), known)] == [at(5)]
    assert [start.level.is_missed, end.level.is_missed] == [False, True]


def test_the_second_level_is_pending_when_the_first_is_breached() -> None:
    declared = make_feed(sla={"low": "hours(2)", "high": "hours(4)"})
    assert declared.sla is not None
    low, high = feed_deadlines("raw", "primary", declared.sla, HOURLY)

    def pending(level: Deadline, now: float) -> list[float]:
        return [(HOURLY.instance(index) - START) / HOUR for index in announced(level, at(now))]

    assert pending(low, 10.5) == []
    assert pending(low, 10.75) == [9]
    assert pending(low, 11) == [9]
    assert pending(high, 10.5) == [7, 8]


@given(st.integers(0, 300), st.integers(0, 300), st.integers(-60, 1000))
def test_what_is_pending_is_not_judged_yet_and_was_announced_in_time(low: int, more: int, now: int) -> None:
    sla = {"low": f"minutes({low + 1})", "high": f"minutes({low + more + 1})"}
    declared = make_feed(sla=sla).sla
    assert declared is not None
    time = START + timedelta(minutes=now)
    for level in feed_deadlines("raw", "primary", declared, HOURLY):
        pending = {HOURLY.instance(index) for index in announced(level, time)}
        for instance in Instances("hours(1)", "UTC", 48).all():
            ends = instance + level.limit
            first = instance + timedelta(minutes=low + 1)
            told = ends - timedelta(minutes=15) <= time or (level.level is SlaLevel.HIGH and first <= time)
            assert (instance in pending) is (instance <= time <= ends and told)


def test_times_beyond_the_calendar() -> None:
    forever = deadline("months(99999)")
    assert to_judge(forever, Scheduled(since=at(0)), None, None, at(40), 10).indexes == range(0)
    assert list(announced(forever, at(40))) == []
    assert forever.of(at(0)).year == 9999
