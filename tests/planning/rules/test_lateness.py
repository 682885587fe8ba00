from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.landing.rules import came_after
from falcon_assets.features.late.rules import LateDataDecision, check_time, judge, last_check, too_late_text
from falcon_assets.model.instant import parse_instant
from falcon_assets.model.process import LateProcess
from falcon_assets.planning.instance_record import LateChange
from falcon_assets.planning.late_inputs import Arrival, late_workflow
from tests.builders import make_process
from tests.hours import HOUR, START, hour

FLIGHTS, WEATHER = "flights", "weather"


def late(policy: str = "backoff", delay: str = "hours(1)") -> LateProcess:
    inputs = [{"input": FLIGHTS}, {"input": WEATHER}]
    return LateProcess.model_validate({"policy": policy, "delay": delay, "inputs": inputs})


def change(number: float = 0, name: str = FLIGHTS, before: str | None = "v1", after: str = "v2") -> LateChange:
    return LateChange(name, f"raw-{name}", hour(number), before, after)


def arrival(
    seen: float, number: float = 0, name: str = FLIGHTS, by_late_rerun: bool = False, unseen: float | None = None
) -> Arrival:
    """Seen at that hour; ``unseen``: looked at hours before, when it was not there."""
    before = None if unseen is None else hour(seen - unseen)
    return Arrival(change(number, name), hour(seen), by_late_rerun, before)


@pytest.mark.parametrize(
    ("policy", "delay", "seen", "check"),
    [
        pytest.param("backoff", "hours(1)", 0.5, 1, id="backoff: the first"),
        pytest.param("backoff", "hours(1)", 1, 1, id="backoff: at the check itself"),
        pytest.param("backoff", "hours(1)", 1.01, 2, id="backoff: just after it"),
        pytest.param("backoff", "hours(2)", -3, 2, id="backoff: seen before the nominal time"),
        pytest.param("backoff", "hours(4)", 9, 10, id="backoff: the bound comes first"),
        pytest.param("backoff", "months(1)", 9, 10, id="backoff: longer than the bound"),
        pytest.param("exp-backoff", "hours(1)", 0, 1, id="exp-backoff: the first"),
        pytest.param("exp-backoff", "hours(1)", 1.5, 3, id="exp-backoff: the second"),
        pytest.param("exp-backoff", "hours(1)", 3, 3, id="exp-backoff: at the second"),
        pytest.param("exp-backoff", "hours(1)", 3.5, 7, id="exp-backoff: the third"),
        pytest.param("exp-backoff", "hours(1)", 7.5, 10, id="exp-backoff: the bound comes first"),
        pytest.param("final", "hours(1)", 0.5, 10, id="final"),
    ],
)
def test_check_times(policy: str, delay: str, seen: float, check: float) -> None:
    assert check_time(late(policy, delay), START, hour(10), hour(seen)) == hour(check)


def all_checks(policy: str, delay: timedelta, bound: datetime) -> list[datetime]:
    """All check times, one by one, as the policies are described."""
    if policy == "final":
        return []
    steps = (k if policy == "backoff" else 2**k - 1 for k in count(1))
    return list(takewhile(lambda check: check < bound, (START + step * delay for step in steps)))


MINUTES = st.integers(-500, 3000)


@given(st.sampled_from(["backoff", "exp-backoff", "final"]), st.integers(1, 300), MINUTES, MINUTES)
def test_the_check_is_the_first_one_at_or_after_what_was_seen(policy: str, delay: int, seen: int, until: int) -> None:
    bound, seen_at = START + timedelta(minutes=until), START + timedelta(minutes=min(seen, until))
    checks = [*all_checks(policy, timedelta(minutes=delay), bound), bound]
    expected = next(check for check in checks if check >= seen_at)
    assert check_time(late(policy, f"minutes({delay})"), START, bound, seen_at) == expected


ARRIVALS = st.lists(
    st.builds(
        arrival,
        st.integers(-3, 40),
        st.integers(-3, 3),
        st.sampled_from([FLIGHTS, WEATHER]),
        st.booleans(),
        st.none() | st.integers(0, 20),
    ),
    max_size=5,
)
POLICIES = st.builds(
    late, st.sampled_from(["backoff", "exp-backoff", "final"]), st.integers(1, 9).map(lambda n: f"hours({n})")
)


def any_check(declared: LateProcess, cut_offs: dict, newest: dict, one: Arrival, until: datetime) -> bool:
    """Whether a check passed after the look before, until a time."""
    bound = last_check(cut_offs, newest)
    checks = [*all_checks(declared.policy, declared.delay.length, bound), bound]
    return any(one.came_at <= check <= until for check in checks)


@given(POLICIES, st.integers(1, 20), st.integers(1, 20), ARRIVALS, st.integers(-3, 60))
def test_laws(declared: LateProcess, flights: int, weather: int, arrivals: list[Arrival], now: int) -> None:
    cut_offs = {FLIGHTS: flights * HOUR, WEATHER: weather * HOUR}
    newest = {FLIGHTS: hour(3), WEATHER: hour(3)}
    now = max([now, *((one.seen_at - START) // HOUR for one in arrivals)])  # nobody sets the clock back here
    verdict = judge(declared, START, cut_offs, newest, arrivals, hour(now))
    ends = {one: one.change.instance + cut_offs[one.change.input] for one in arrivals}
    in_time = [
        one
        for one in arrivals
        if one.seen_at <= ends[one] or any_check(declared, cut_offs, newest, one, until=ends[one])
    ]
    counting = [one for one in arrivals if one in in_time or one.by_late_rerun]
    if counting:
        assert verdict.too_late == ()
        assert verdict.due_at is not None
        assert verdict.due_at >= min(one.seen_at for one in counting)
        assert verdict.rerun == (tuple(one.change for one in counting) if hour(now) >= verdict.due_at else ())
    else:
        assert (verdict.rerun, verdict.due_at) == ((), None)
        assert [one for one, _ in verdict.too_late] == [one.change for one in arrivals]
        assert all(after > timedelta() for _, after in verdict.too_late)
    if in_time and in_time == counting:
        assert verdict.due_at is not None
        seen = min(one.seen_at for one in counting)
        assert verdict.due_at <= max(last_check(cut_offs, newest), seen), "no check after the bound"
        missed = [one for one in counting if any_check(declared, cut_offs, newest, one, one.seen_at)]
        assert not missed or verdict.due_at <= min(one.seen_at for one in missed), "it is made up for at once"
    # What is due stays due, and the clock alone makes nothing too late.
    later = judge(declared, START, cut_offs, newest, arrivals, hour(now + 100))
    assert (later.due_at, later.too_late) == (verdict.due_at, verdict.too_late)
    assert set(verdict.rerun) <= set(later.rerun)


def verdict(*arrivals: Arrival, now: float, **declared: str) -> LateDataDecision:
    cut_offs = {FLIGHTS: 6 * HOUR, WEATHER: 2 * HOUR}
    return judge(late(**declared), START, cut_offs, {FLIGHTS: START, WEATHER: START}, arrivals, hour(now))


def test_what_is_due_takes_what_else_counts_along() -> None:
    first, second = arrival(0.5), arrival(1.05, name=WEATHER)
    assert verdict(first, second, now=0.98) == LateDataDecision((), hour(1), ())
    assert verdict(first, second, now=1) == LateDataDecision((first.change, second.change), hour(1), ())


def test_a_change_after_the_cut_off_of_its_own_feed_is_too_late() -> None:
    assert verdict(arrival(2, name=WEATHER), now=9).rerun == (change(name=WEATHER),)
    assert verdict(arrival(2.5, name=WEATHER), now=9) == LateDataDecision(
        (), None, ((change(name=WEATHER), 0.5 * HOUR),)
    )


def test_nothing_is_said_to_be_too_late_that_a_rerun_will_read() -> None:
    assert verdict(arrival(2.5, name=WEATHER), arrival(5), now=5.5, policy="final") == LateDataDecision((), hour(6), ())


@pytest.mark.parametrize(
    ("seen", "unseen", "policy", "due"),
    [
        pytest.param(5, None, "exp-backoff", 6, id="seen as it came: the next check"),
        pytest.param(5, 1, "exp-backoff", 6, id="looked at after the last check"),
        pytest.param(5, 3, "exp-backoff", 5, id="nobody made the check at 3"),
        pytest.param(5, 2, "exp-backoff", 6, id="looked at as the check was made"),
        pytest.param(3, 1, "exp-backoff", 3, id="seen at a check"),
        pytest.param(9, 5, "backoff", 9, id="nobody looked at the cut-off"),
        pytest.param(9, 5, "final", 9, id="nobody made the only check"),
        pytest.param(9, 3, "final", None, id="looked at when the cut-off was passed"),
        pytest.param(2.5, 0.7, "exp-backoff", None, id="no check before its own cut-off was missed"),
    ],
)
def test_a_check_that_nobody_made_is_made_up_for(
    seen: float, unseen: float | None, policy: str, due: float | None
) -> None:
    one = arrival(seen, unseen=unseen, name=WEATHER if seen < 3 else FLIGHTS)
    found = verdict(one, now=30, policy=policy)
    if due is None:
        assert found == LateDataDecision((), None, ((one.change, (seen - (2 if seen < 3 else 6)) * HOUR),))
    else:
        assert found == LateDataDecision((one.change,), hour(due), ())


@pytest.mark.parametrize(
    ("looked", "modified", "expected"),
    [(None, None, None), (None, 2, None), (3, None, 3), (3, 2, 3), (3, 4, 4), (3, 9, 6), (9, None, 6)],
)
def test_since_when_it_may_be_there(looked: float | None, modified: float | None, expected: float | None) -> None:
    times = [None if one is None else hour(one) for one in (looked, modified, expected)]
    assert came_after(*times[:2], hour(6)) == times[2]


def test_what_a_late_rerun_published_counts_at_once_and_always() -> None:
    cascade = arrival(50, by_late_rerun=True)
    assert verdict(cascade, now=50, policy="final") == LateDataDecision((cascade.change,), hour(50), ())


def test_the_bound_is_the_last_cut_off_of_the_window() -> None:
    assert last_check({FLIGHTS: 6 * HOUR, WEATHER: 2 * HOUR}, {FLIGHTS: hour(-3), WEATHER: hour(2)}) == hour(4)


def test_times_beyond_the_calendar_are_its_end() -> None:
    end = parse_instant("9999-12-31T23:00Z")
    bound = last_check({FLIGHTS: 600 * HOUR}, {FLIGHTS: end})
    assert bound.year == 9999
    assert check_time(late(), end, bound, end) == bound


SQL = {"engine": "spark-sql", "path": "a.sql"}
LATE_SQL = {"engine": "spark-sql", "path": "late.sql"}


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        pytest.param(None, "a.sql", id="no late rerun"),
        pytest.param((), "y.sql", id="nobody knows what changed"),
        pytest.param(("x",), "a.sql", id="one without a workflow"),
        pytest.param(("z", "y"), "y.sql", id="the first declared"),
        pytest.param(("z", "x"), "z.sql", id="the first that has one"),
    ],
)
def test_the_workflow_of_a_late_rerun(changed: tuple[str, ...] | None, path: str) -> None:
    inputs = [{"name": name, "feed": "raw", "start": "now(0,0)", "end": "now(0,0)"} for name in "xyz"]
    late_inputs = [
        {"input": "x"},
        *({"input": name, "workflow": {"engine": "spark-sql", "path": f"{name}.sql"}} for name in "yz"),
    ]
    process = make_process(inputs=inputs, workflow=SQL, late_process={"policy": "final", "inputs": late_inputs})
    changes = None if changed is None else [change(name=name) for name in changed]
    assert late_workflow(process, changes).path == path
    assert late_workflow(make_process(workflow=SQL), [change()]).path == "a.sql"


def test_what_is_said_of_what_came_too_late() -> None:
    assert too_late_text("hourly", START, change(), timedelta(minutes=90, milliseconds=7)) == (
        "raw-flights 2013-01-01T00:00Z changed 1:30:00 after its cut-off: hourly 2013-01-01T00:00Z is not run again"
    )


def test_a_clock_that_was_set_back_delays_no_check() -> None:
    """What was seen at a time that is yet to come is acted on now, if it came in time by that clock."""
    cut_offs, newest = {FLIGHTS: 6 * HOUR}, {FLIGHTS: hour(0)}
    one = arrival(5)
    assert judge(late(), START, cut_offs, newest, [one], hour(4)) == LateDataDecision((one.change,), hour(4), ())
    by_rerun = arrival(5, by_late_rerun=True)
    assert judge(late(), START, cut_offs, newest, [by_rerun], hour(4)).rerun == (by_rerun.change,)
    too_late = arrival(7)
    assert judge(late(), START, cut_offs, newest, [too_late], hour(4)).rerun == ()
