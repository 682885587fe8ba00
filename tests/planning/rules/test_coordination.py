from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.instances.rules import coordination
from falcon_assets.instances.rules.coordination import decide
from falcon_assets.instances.rules.pending_reruns import PendingReruns
from falcon_assets.instances.rules.readiness import MissingInput, Readiness
from falcon_assets.instances.rules.situation import Decision, Situation
from falcon_assets.instances.rules.waiting import (
    InputsMissing,
    InRun,
    NewerIsReady,
    NoFreeSlot,
    ProcessSuspended,
    TurnPending,
)
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.instance_record import LATE, InstanceRecord, InstanceState, Launch, RerunRequest
from falcon_assets.planning.reasons import SeenSource
from falcon_assets.planning.retries import is_alive, opens_at, settled, timeout_of
from tests.builders import make_feed, make_process, workload_of
from tests.hours import HOUR, START
from tests.properties import examples
from tests.work import calls

FLIGHTS = {"name": "flights", "feed": "raw-flights", "start": "now(0,0)", "end": "now(0,0)"}


def at(text: str) -> datetime:
    """That time of 1 January 2013."""
    return parse_instant(f"2013-01-01T{text}Z")


def record(time: str, state: str, **known) -> InstanceRecord:
    return InstanceRecord(at(time), InstanceState(state), **known)


def situation(
    now="04:00",
    available=("00:00", "01:00", "02:00", "03:00", "04:00"),
    records=(),
    until=None,
    since="00:00",
    first_open=0,
    slots_in_use=0,
    budget=100,
    **process,
) -> Situation:
    """An hourly process since 00:00 whose inputs are there, as far as not said otherwise."""
    return Situation(
        readiness=Readiness(workload_of(make_process(**process), make_feed())),
        now=at(now),
        until=at(until) if until else None,
        since=at(since) if since else None,
        first_open=first_open,
        records={it.nominal: it for it in records},
        slots_in_use=slots_in_use,
        available={"raw-flights": set(map(at, available))},
        budget=budget,
    )


def launched(decision: Decision) -> list[tuple[list[str], int]]:
    return [([f"{it:%H:%M}" for it in launch.nominals], launch.slots) for launch in decision.launches]


def named(reasons) -> dict[str, str]:
    return {f"{nominal:%H:%M}": str(reason) for nominal, reason in dict(reasons).items()}


SLOT = "waits for a free slot (parallel: 1)"
RUNNING = record("01:00", "RUNNING", attempt=1, run_id="r1", started=at("01:05"))
FAILED = record("04:00", "FAILED", attempt=2, failures=2, run_id="r2", ended=at("04:10"))


def test_a_whole_decision():
    records = [record("00:00", "SUCCEEDED", attempt=1, run_id="r0"), RUNNING]
    found = decide(situation(now="04:20", available=["02:00", "03:00"], records=records, parallel=3, slots_in_use=1))
    assert found == Decision(
        launches=(Launch((at("02:00"), at("03:00")), 2),),
        timed_out=(),
        skipped=(),
        waiting={
            at("01:00"): InRun("r1"),
            at("04:00"): InputsMissing((MissingInput("flights", "raw-flights", at("04:00")),), 0, at("10:00")),
        },
        first_open=1,
        wake_at=at("05:00"),
    )


def test_nothing_is_due_before_the_first_instance():
    early = replace(situation(), now=START - HOUR)
    assert decide(early) == Decision((), (), (), {}, 0, START)


def test_nothing_is_left_to_wake_up_for_at_the_end():
    ending = [{"name": "primary", "validity": {"start": "2013-01-01T00:00Z", "end": "2013-01-01T02:00Z"}}]
    done = [record("00:00", "SUCCEEDED"), record("01:00", "SKIPPED")]
    assert decide(situation(records=done, clusters=ending)) == Decision((), (), (), {}, 2, None)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({}, [(["00:00", "01:00", "02:00", "03:00", "04:00"], 1)]),
        ({"parallel": 3}, [(["00:00", "01:00", "02:00", "03:00", "04:00"], 3)]),
        ({"parallel": 9}, [(["00:00", "01:00", "02:00", "03:00", "04:00"], 5)]),
        ({"parallel": 3, "slots_in_use": 2}, [(["00:00", "01:00", "02:00", "03:00", "04:00"], 1)]),
        ({"parallel": 1, "slots_in_use": 1}, []),
        ({"parallel": 1, "slots_in_use": 3}, []),
        ({"parallel": 9, "budget": 2}, [(["00:00", "01:00"], 2)]),
        ({"parallel": 9, "budget": 0}, []),
        ({"until": "02:30"}, [(["00:00", "01:00", "02:00"], 1)]),
        ({"until": "02:00"}, [(["00:00", "01:00", "02:00"], 1)]),
        ({"since": None}, []),
        ({"first_open": 3}, [(["03:00", "04:00"], 1)]),
        ({"available": ["00:00", "01:00", "03:00"], "parallel": 3}, [(["00:00", "01:00"], 2), (["03:00"], 1)]),
        ({"available": ["00:00", "01:00", "03:00"], "parallel": 2}, [(["00:00", "01:00"], 2)]),
        ({"records": [RUNNING], "parallel": 3}, [(["00:00"], 1), (["02:00", "03:00", "04:00"], 2)]),
        (
            {"order": "LIFO", "available": ["00:00", "02:00", "03:00"], "parallel": 3},
            [(["02:00", "03:00"], 2), (["00:00"], 1)],
        ),
        ({"order": "LIFO", "budget": 2}, [(["03:00", "04:00"], 1)]),
        ({"order": "LAST_ONLY", "parallel": 5}, [(["04:00"], 1)]),
        ({"inputs": [], "available": []}, [(["00:00", "01:00", "02:00", "03:00", "04:00"], 1)]),
        ({"inputs": [{**FLIGHTS, "optional": True}], "available": [], "until": "00:00"}, [(["00:00"], 1)]),
        ({"records": [record("00:00", "READY", reason="rerun", attempt=1)], "until": "00:00"}, [(["00:00"], 1)]),
    ],
    ids=[
        "one slot",
        "three slots",
        "more slots than instances",
        "slots in use",
        "no free slot",
        "more in use than there are",
        "budget",
        "no budget",
        "until",
        "until includes",
        "not running",
        "first open",
        "two stretches",
        "no slot left for the second stretch",
        "around a running one",
        "LIFO",
        "LIFO with a budget",
        "LAST_ONLY",
        "no inputs",
        "optional input",
        "asked for again",
    ],
)
def test_launches(overrides, expected):
    assert launched(decide(situation(**overrides))) == expected


def test_a_run_gets_a_hundred_instances_at_most():
    found = decide(replace(situation(inputs=[], parallel=150, budget=250), now=START + 299 * HOUR))
    assert [(len(it.nominals), it.slots) for it in found.launches] == [(100, 100), (100, 50)]
    assert found.launches[1].nominals[0] == START + 100 * HOUR
    assert set(found.waiting.values()) == {NoFreeSlot(150, False)} and len(found.waiting) == 100


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"slots_in_use": 1, "until": "01:00"}, {"00:00": SLOT, "01:00": SLOT}),
        ({"available": ["01:00"], "until": "01:00"}, {"00:00": "waits for flights: raw-flights 2013-01-01T00:00Z"}),
        ({"until": "00:00", "since": None}, {"00:00": "does not run by itself: it is not scheduled, or suspended"}),
        (
            {"until": "01:00", "since": None, "records": [RUNNING]},
            {"00:00": "does not run by itself: it is not scheduled, or suspended", "01:00": "is in run r1"},
        ),
        (
            {"until": "00:00", "records": [record("00:00", "FAILED", failures=9, queued_run="r7", run_id="r1")]},
            {"00:00": "is in run r7"},
        ),
        (
            {"until": "00:00", "records": [record("00:00", "SUCCEEDED", queued_run="r7", run_id="r1")]},
            {"00:00": "is in run r7"},
        ),
        ({"until": "00:00", "records": [record("00:00", "SUSPENDED")]}, {"00:00": "is suspended"}),
        (
            {"first_open": 4, "now": "04:10", "records": [FAILED]},
            {"04:00": "is tried again at 2013-01-01T04:20Z (attempt 2 failed)"},
        ),
        (
            {"first_open": 4, "now": "04:10", "records": [FAILED], "retry": {"policy": "exp-backoff"}},
            {"04:00": "is tried again at 2013-01-01T04:30Z (attempt 2 failed)"},
        ),
        (
            {
                "first_open": 4,
                "now": "04:15",
                "records": [replace(FAILED, state=InstanceState.TIMED_OUT)],
                "retry": {"on_timeout": True},
            },
            {"04:00": "is tried again at 2013-01-01T04:20Z (attempt 2 timed out)"},
        ),
        (
            {"budget": 1, "parallel": 3, "until": "01:00"},
            {"01:00": "waits for its turn (at most 1 instance is launched at once)"},
        ),
        (
            {"available": [], "until": "00:00", "inputs": [FLIGHTS, {**FLIGHTS, "name": "again"}]},
            {"00:00": "waits for flights: raw-flights 2013-01-01T00:00Z, again: raw-flights 2013-01-01T00:00Z"},
        ),
    ],
    ids=[
        "no free slot",
        "input missing",
        "process suspended",
        "process suspended, one still running",
        "queued for a retry",
        "queued for a rerun",
        "instance suspended",
        "periodic retry",
        "exp-backoff retry",
        "retry after a timeout",
        "budget",
        "two inputs missing",
    ],
)
def test_reasons_for_waiting(overrides, expected):
    assert named(decide(situation(**overrides)).waiting) == expected


MISSING = "flights: raw-flights 2013-01-01T00:00Z"


@pytest.mark.parametrize(
    ("overrides", "reason", "wake_at"),
    [
        ({"now": "05:59"}, None, "06:00"),
        ({"now": "06:00"}, f"missing after 6 x hours(1): {MISSING}", None),
        ({"now": "02:59", "timeout": "hours(3)"}, None, "03:00"),
        ({"now": "03:00", "timeout": "hours(3)"}, f"missing after hours(3): {MISSING}", None),
        ({"now": "06:00", "since": "02:30"}, None, "08:30"),
        ({"now": "08:30", "since": "02:30"}, f"missing after 6 x hours(1): {MISSING}", None),
        ({"now": "00:29", "frequency": "minutes(2)"}, None, "00:30"),
        ({"now": "00:30", "frequency": "minutes(2)"}, f"missing after minutes(30): {MISSING}", None),
        ({"now": "23:00", "since": None}, None, None),
        (
            {"now": "06:30", "records": [record("00:00", "FAILED", failures=1, ended=at("01:00"))]},
            None,
            "07:10",
        ),
        (
            {"now": "07:10", "records": [record("00:00", "FAILED", failures=1, ended=at("01:00"))]},
            f"missing after 6 x hours(1): {MISSING}",
            None,
        ),
    ],
    ids=[
        "just before",
        "default",
        "just before a declared one",
        "declared",
        "counts from the scheduling",
        "after the scheduling",
        "just before half an hour",
        "half an hour at least",
        "not running",
        "counts from the retry",
        "after the retry",
    ],
)
def test_timeout(overrides, reason, wake_at):
    found = decide(situation(available=[], until="00:00", **overrides))
    assert named(found.timed_out) == ({"00:00": reason} if reason else {})
    assert (found.launches, found.first_open) == ((), 0)
    assert found.wake_at == (at(wake_at) if wake_at else None)
    assert bool(found.waiting) is not bool(reason)


def test_nobody_waits_for_what_was_evicted():
    gone = {"raw-flights": {at("00:00"): at("03:30"), at("01:00"): at("03:30")}}
    found = decide(replace(situation(available=["01:00", "02:00", "03:00"]), evicted=gone))
    said = "does not wait: flights: raw-flights 2013-01-01T00:00Z was evicted on 2013-01-01T03:30Z"
    assert named(found.timed_out) == {"00:00": said}
    assert named(found.waiting) == {"04:00": "waits for flights: raw-flights 2013-01-01T04:00Z"}


def test_what_became_complete_runs_however_late():
    found = decide(situation(now="23:00", until="00:00"))
    assert launched(found) == [(["00:00"], 1)] and not found.timed_out


def test_last_only_skips_what_is_ready_and_older():
    found = decide(situation(order="LAST_ONLY", available=["00:00", "02:00", "03:00"]))
    assert launched(found) == [(["03:00"], 1)]
    newer = NewerIsReady(at("03:00"))
    assert found.skipped == ((at("02:00"), newer), (at("00:00"), newer))
    assert list(named(found.waiting)) == ["04:00", "01:00"]


def test_last_only_skips_without_a_free_slot_too():
    found = decide(situation(order="LAST_ONLY", available=["00:00", "02:00"], until="02:00", slots_in_use=1))
    assert named(found.skipped) == {"00:00": "LAST_ONLY: 2013-01-01T02:00Z is newer"}
    assert named(found.waiting)["02:00"] == SLOT and not found.launches


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({}, "05:00"),
        ({"until": "04:30"}, None),
        ({"until": "05:00"}, "05:00"),
        ({"since": None}, None),
        ({"first_open": 4, "now": "04:10", "records": [FAILED]}, "04:20"),
        ({"first_open": 4, "now": "04:10", "until": "04:00", "records": [FAILED]}, "04:20"),
        ({"available": [], "timeout": "minutes(270)"}, "04:30"),
    ],
    ids=["next instance", "until", "until the next", "not running", "retry", "retry after until", "timeout"],
)
def test_when_to_wake_up(overrides, expected):
    assert decide(situation(**overrides)).wake_at == (at(expected) if expected else None)


def backlog(hours: int = 3000, available=(), **process) -> Situation:
    """So many hours are due, of which those by their numbers have landed."""
    there = {"raw-flights": {START + number * HOUR for number in available}}
    return replace(situation(**process), now=START + (hours - 1) * HOUR, available=there)


@pytest.mark.parametrize("order", ["FIFO", "LIFO", "LAST_ONLY"])
def test_why_it_waits_is_said_of_the_first_of_a_long_backlog(order):
    found = decide(backlog(order=order, timeout="months(12)"))
    expected = range(1000) if order == "FIFO" else range(2999, 1999, -1)
    assert list(found.waiting) == [START + k * HOUR for k in expected]
    assert (found.further, found.launches, found.timed_out) == (2000, (), ())


def test_what_is_ready_runs_however_many_older_ones_wait():
    found = decide(backlog(available=[2900, 2901, 2950], parallel=9, timeout="months(12)"))
    assert found.launches == (
        Launch((START + 2900 * HOUR, START + 2901 * HOUR), 2),
        Launch((START + 2950 * HOUR,), 1),
    )
    assert (len(found.waiting), found.further) == (1000, 1997)


@pytest.mark.parametrize("order", ["FIFO", "LIFO", "LAST_ONLY"])
def test_what_is_ready_runs_in_the_order_of_the_process(order):
    found = decide(backlog(available=[10, 1500, 2999], order=order, timeout="months(12)"))
    assert found.launches == (Launch((START + (10 if order == "FIFO" else 2999) * HOUR,), 1),)
    assert len(found.skipped) == (2 if order == "LAST_ONLY" else 0)


def test_what_needs_no_input_runs_however_many_older_ones_wait():
    feed = make_feed(clusters=[{"name": "primary", "validity": {"start": START, "end": START + 2000 * HOUR}}])
    long = backlog(timeout="months(12)", parallel=9)
    assert decide(replace(long, readiness=Readiness(workload_of(long.workload.entity, feed)))).launches == (
        Launch(tuple(START + k * HOUR for k in range(2000, 2100)), 9),
    )


@pytest.mark.parametrize("order", ["FIFO", "LIFO", "LAST_ONLY"])
def test_the_oldest_of_a_long_backlog_time_out_piece_by_piece(order):
    found = decide(backlog(5000, order=order, timeout="hours(2000)"))
    assert sorted(T for T, _ in found.timed_out) == [START + k * HOUR for k in range(1000)]
    over = {T: InstanceRecord(T, InstanceState.TIMED_OUT, failures=1, ended=T) for T, _ in found.timed_out}
    left = 4000 - len(found.waiting)
    assert found.further == left
    again = decide(replace(backlog(5000, order=order, timeout="hours(2000)"), records=over))
    assert again.first_open == 1000 and len(again.timed_out) == 1000


def test_retries_beyond_a_long_backlog_are_waited_for_and_tried():
    failed = InstanceRecord(START + 2500 * HOUR, InstanceState.FAILED, failures=1, ended=START + 2999 * HOUR)
    long = replace(backlog(available=[2500], timeout="months(12)"), records={failed.nominal: failed})
    retry_at = START + 2999 * HOUR + timedelta(minutes=10)
    found = decide(long)
    assert (found.launches, found.retry_at, found.wake_at) == ((), retry_at, retry_at)
    assert decide(replace(long, now=retry_at)).launches == (Launch((failed.nominal,), 1),)


@pytest.mark.parametrize(
    ("declared", "available"),
    [
        (FLIGHTS, []),
        (FLIGHTS, range(0, 30_000, 2)),
        ({**FLIGHTS, "start": "now(-1,0)"}, range(0, 30_000, 2)),
        ({**FLIGHTS, "start": "latest(-4)", "end": "latest(0)"}, [29_000, 29_001]),
        ({**FLIGHTS, "start": "today(0,0)"}, range(0, 30_000, 24)),
    ],
    ids=["nothing there", "every other there", "every other there, in vain", "latest", "windows of the calendar"],
)
def test_a_decision_about_a_long_backlog_takes_a_moment(declared, available):
    years = [{"name": "primary", "validity": {"start": START, "end": START + 40_000 * HOUR}}]
    zone, order = "Europe/Berlin" if declared["start"] == "today(0,0)" else "UTC", "LIFO"
    long = backlog(
        30_000, available, inputs=[declared], order=order, timezone=zone, clusters=years, timeout="months(99)"
    )
    long = replace(long, readiness=Readiness(workload_of(long.workload.entity, make_feed(clusters=years))))
    decide(long)  # what never changes is remembered
    assert calls(lambda: decide(long)) < 10 * 30_000


def test_last_only_drops_a_long_backlog_at_once():
    backlog = replace(situation(inputs=[], order="LAST_ONLY"), now=START + 2999 * HOUR)
    found = decide(backlog)
    assert found.launches == (Launch((START + 2999 * HOUR,), 1),) and len(found.skipped) == 2999


def test_instances_in_runs_do_not_hide_what_can_start():
    runs = {
        START + k * HOUR: InstanceRecord(START + k * HOUR, InstanceState.WAITING, queued_run="r") for k in range(1500)
    }
    found = decide(replace(situation(inputs=[]), now=START + 1500 * HOUR, records=runs))
    assert found.launches == (Launch((START + 1500 * HOUR,), 1),)


@pytest.mark.parametrize(
    ("state", "known", "retry", "expected"),
    [
        ("WAITING", {}, {}, False),
        ("READY", {}, {}, False),
        ("RUNNING", {"run_id": "r"}, {}, False),
        ("SUSPENDED", {}, {}, False),
        ("SUCCEEDED", {}, {}, True),
        ("SUCCEEDED", {"queued_run": "r"}, {}, False),
        ("SKIPPED", {}, {}, True),
        ("KILLED", {}, {}, True),
        ("KILLED", {"queued_run": "r"}, {}, False),
        ("FAILED", {"failures": 3}, {}, False),
        ("FAILED", {"failures": 4}, {}, True),
        ("FAILED", {"failures": 4, "queued_run": "r"}, {}, False),
        ("FAILED", {"failures": 1}, {"policy": "final"}, True),
        ("FAILED", {"failures": 1}, {"attempts": 0}, True),
        ("TIMED_OUT", {"failures": 1}, {}, True),
        ("TIMED_OUT", {"failures": 1}, {"on_timeout": True}, False),
        ("TIMED_OUT", {"failures": 4}, {"on_timeout": True}, True),
        ("TIMED_OUT", {"failures": 1}, {"on_timeout": True, "policy": "final"}, True),
    ],
)
def test_settled(state, known, retry, expected):
    assert settled(record("00:00", state, **known), make_process(retry=retry).retry) is expected


@pytest.mark.parametrize(
    ("policy", "failures", "expected"),
    [
        ("periodic", 1, "01:10"),
        ("periodic", 3, "01:10"),
        ("periodic", 4, None),
        ("exp-backoff", 1, "01:10"),
        ("exp-backoff", 2, "01:20"),
        ("exp-backoff", 3, "01:40"),
        ("exp-backoff", 4, None),
        ("final", 1, None),
    ],
)
def test_when_it_is_tried_again(policy, failures, expected):
    failed = record("00:00", "FAILED", failures=failures, ended=at("01:00"))
    found = opens_at(failed, make_process(retry={"policy": policy}).retry)
    assert found == (at(expected) if expected else None)


@pytest.mark.parametrize("kind", ["store_away", "being_written"])
@pytest.mark.parametrize("policy", ["periodic", "exp-backoff", "final"])
def test_where_a_store_was_away_it_is_tried_again_as_often_as_it_takes(policy, kind):
    away = record("00:00", "WAITING", failures=4, ended=at("01:00"), reason_data={"kind": kind})
    workload = make_process(retry={"policy": policy})
    assert (opens_at(away, workload.retry), settled(away, workload.retry)) == (at("01:10"), False)
    assert opens_at(replace(away, reason_data=None), workload.retry) is None
    assert opens_at(replace(away, queued_run="r"), workload.retry) is None


@pytest.mark.parametrize(
    ("looked", "failed", "expected"),
    [
        pytest.param("01:01", None, "01:01", id="it answers again: a minute after the attempt"),
        pytest.param("00:59", None, "01:10", id="nobody looked since"),
        pytest.param("01:01", "01:01", "01:10", id="it does not answer"),
        pytest.param(None, None, "01:10", id="nobody looked ever"),
    ],
)
def test_where_the_source_of_another_colo_was_away_it_is_tried_again_when_that_answers(looked, failed, expected):
    away = record("00:00", "WAITING", ended=at("01:00"), reason_data={"kind": "store_away"})
    seen = SeenSource("lake", "us", at(looked) if looked else None, False, at(failed) if failed else None, "")
    found = situation(now="01:00", available=["00:00"], records=[away])
    object.__setattr__(found.workload, "source_colo", "us")
    found = replace(found, seen_source=lambda feed, instance: seen)
    assert decide(replace(found, now=at(expected) - timedelta(seconds=1))).launches == ()
    assert launched(decide(replace(found, now=at(expected)))) == [(["00:00"], 1)]


def test_a_hundred_doublings_are_for_ever():
    patient = make_process(retry={"policy": "exp-backoff", "attempts": 100})
    failed = record("00:00", "FAILED", failures=100, ended=at("01:00"))
    assert opens_at(failed, patient.retry) == datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({}, timedelta(hours=6)),
        ({"frequency": "minutes(4)"}, timedelta(minutes=30)),
        ({"frequency": "minutes(6)"}, timedelta(minutes=36)),
        ({"timeout": "minutes(1)"}, timedelta(minutes=1)),
    ],
)
def test_timeouts(overrides, expected):
    assert timeout_of(make_process(**overrides)) == expected


@pytest.mark.parametrize("policy", ["periodic", "exp-backoff"])
def test_a_failure_is_tried_again_when_its_time_has_come(policy):
    retry = {"policy": policy}
    late = situation(now="04:30", first_open=4, records=[FAILED], retry=retry)
    assert launched(decide(late)) == [(["04:00"], 1)]


def test_a_day_that_the_zone_left_out_runs_once():
    samoa = {"name": "primary", "validity": {"start": "2011-12-28T10:00Z", "end": "2012-01-02T00:00Z"}}
    found = decide(
        replace(
            situation(inputs=[], frequency="days(1)", timezone="Pacific/Apia", clusters=[samoa]),
            since=parse_instant("2011-12-01T00:00Z"),
        )
    )
    nominals = [it for launch in found.launches for it in launch.nominals]
    assert len(set(nominals) | set(found.waiting)) == len(nominals) + len(found.waiting) == 5


@st.composite
def situations(draw) -> Situation:
    records = []
    for hour in draw(st.sets(st.integers(0, 20))):
        state = draw(st.sampled_from(InstanceState))
        queued = draw(st.sampled_from([None, None, "q"]))
        ended = START + draw(st.integers(0, 90)) * timedelta(minutes=20)
        failures = draw(st.integers(0, 4))
        records.append(
            InstanceRecord(
                START + hour * HOUR, state, attempt=1, failures=failures, queued_run=queued, run_id="r", ended=ended
            )
        )
    drawn = situation(
        records=records,
        slots_in_use=draw(st.integers(0, 4)),
        budget=draw(st.integers(0, 12)),
        order=draw(st.sampled_from(["FIFO", "LIFO", "LAST_ONLY"])),
        parallel=draw(st.integers(1, 12)),
        inputs=draw(
            st.sampled_from(
                [
                    [],
                    [FLIGHTS],
                    [{**FLIGHTS, "start": "now(-2,0)"}],
                    [{**FLIGHTS, "start": "today(0,0)"}],
                    [{**FLIGHTS, "start": "latest(-2)", "end": "latest(-1)"}],
                    [FLIGHTS, {**FLIGHTS, "name": "next", "start": "future(0,3)", "end": "future(1,3)"}],
                ]
            )
        ),
        retry={
            "policy": draw(st.sampled_from(["periodic", "exp-backoff", "final"])),
            "on_timeout": draw(st.booleans()),
        },
    )
    known = drawn.records
    minutes = st.integers(-30, 30 * 60).map(lambda minute: START + timedelta(minutes=minute))
    settled_until = 0
    while (it := known.get(START + settled_until * HOUR)) and settled(it, drawn.workload.retry):
        settled_until += 1
    now = draw(minutes)
    return replace(
        drawn,
        now=now,
        # Nobody sets the clock back here.
        records={it: replace(one, ended=min(one.ended, max(now, START))) for it, one in known.items()},
        until=draw(st.none() | minutes),
        since=draw(st.none() | minutes),
        first_open=draw(st.integers(0, settled_until)),
        available={"raw-flights": {START + hour * HOUR for hour in draw(st.sets(st.integers(0, 31)))}},
    )


@contextmanager
def considering(count: int) -> Iterator[None]:
    """So many instances are considered at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coordination, "CONSIDERED", count)
        yield


@examples(400)
@given(situations(), st.integers(1, 6))
def test_everything_that_is_ready_starts_however_many_others_wait(now: Situation, considered: int):
    everything = decide(now)
    with considering(considered):
        found = decide(now)
    assert (found.launches, found.first_open) == (everything.launches, everything.first_open)
    assert found.skipped == everything.skipped
    assert found.retry_at == everything.retry_at
    assert set(found.timed_out) <= set(everything.timed_out)
    assert found.waiting.items() <= everything.waiting.items()
    said = len(found.waiting) + len(found.timed_out)
    assert found.further == len(everything.waiting) + len(everything.timed_out) - said


@examples(400)
@given(situations())
def test_laws(now: Situation):
    workload, records = now.workload, now.records
    found = decide(now)
    started = [it for launch in found.launches for it in launch.nominals]
    due = [it for it in now.timeline.until(now.now)[now.first_open :] if now.until is None or it <= now.until]
    over = {it for it in due if it in records and settled(records[it], workload.retry)}

    slots = sum(launch.slots for launch in found.launches)
    assert slots <= max(workload.parallel - now.slots_in_use, 0)
    assert all(1 <= launch.slots <= len(launch.nominals) for launch in found.launches)
    assert len(started) <= now.budget

    groups = [started, [it for it, _ in found.timed_out], [it for it, _ in found.skipped], list(found.waiting), over]
    assert sorted(it for group in groups for it in group) == due

    touched = {*started, *groups[1], *groups[2]}
    assert not any(it in records and records[it].in_flight for it in touched)
    assert now.since is not None or not touched
    assert all(not any(now.readiness.missing(it, now.available)) for it in [*started, *groups[2]])
    assert all(any(now.readiness.missing(it, now.available)) for it in groups[1])
    opened = [opens_at(records[it], workload.retry) for it in touched if it in records]
    assert all(moment is None or moment <= now.now for moment in opened)

    for launch in found.launches:
        assert all(after - before == HOUR for before, after in pairwise(launch.nominals))
    stretches = [launch.nominals[0] for launch in found.launches]
    assert stretches == sorted(stretches, reverse=workload.order != "FIFO")
    passed_over = [it for it, reason in found.waiting.items() if isinstance(reason, (NoFreeSlot, TurnPending))]
    assert (
        not passed_over
        or slots == workload.parallel - now.slots_in_use
        or len(started) == now.budget
        or (now.slots_in_use >= workload.parallel)
    )
    if started and passed_over:
        assert max(started) < min(passed_over) if workload.order == "FIFO" else min(started) > max(passed_over)
    if workload.order == "LAST_ONLY":
        assert len(started) <= 1 and all(it < min(started or passed_over) for it in groups[2])
    else:
        assert not found.skipped

    assert found.first_open >= now.first_open
    held = {it for it, one in records.items() if one.state is InstanceState.SUSPENDED}
    assert all(now.timeline.instance(k) in over | held for k in range(now.first_open, found.first_open))
    assert found.wake_at is None or (found.wake_at > now.now and now.since is not None)


@examples(200)
@given(situations(), st.integers(1, 59))
def test_the_clock_changes_nothing_before_the_time_to_wake_up(now: Situation, minutes: int):
    now = replace(now, since=now.since or START)
    found = decide(now)
    later = now.now + timedelta(minutes=minutes)
    if found.wake_at is not None:
        later = min(later, found.wake_at - timedelta(minutes=1))
    if later > now.now:
        assert decide(replace(now, now=later)) == found


def request(at_time: str = "05:00", attempt: int = 1, failures: int = 0, kind: str = LATE) -> RerunRequest:
    return RerunRequest(kind, attempt, failures, at(at_time))


def done(*times: str) -> list[InstanceRecord]:
    return [record(time, "SUCCEEDED", attempt=1, run_id="r") for time in times]


ALL = ("00:00", "01:00", "02:00", "03:00", "04:00")


def asked(*times: str, **overrides) -> Situation:
    """Everything has run, and those times are asked to run again."""
    requests = {at(time): request() for time in times}
    return replace(situation(now="05:00", records=done(*ALL), until="04:00", **overrides), requests=requests)


def test_what_is_asked_for_runs_again():
    assert decide(asked("01:00", "03:00")).launches == (Launch((at("01:00"),), 1, late=True),)
    assert decide(asked("01:00", "02:00", "04:00", parallel=3)).launches == (
        Launch((at("01:00"), at("02:00")), 2, late=True),
        Launch((at("04:00"),), 1, late=True),
    )


def test_also_before_the_first_open_one():
    found = decide(asked("01:00", "02:00", first_open=5, parallel=2))
    assert found.launches == (Launch((at("01:00"), at("02:00")), 2, late=True),)
    assert found.first_open == 5
    assert decide(asked("01:00", first_open=5, since=None)).waiting == {at("01:00"): ProcessSuspended()}
    outside = replace(asked("01:00", first_open=5), requests={at("01:30"): request()})
    assert decide(outside).launches == ()


def test_what_a_person_ran_and_failed_before_the_first_open_one_is_tried_again():
    failed = record("01:00", "FAILED", attempt=2, failures=1, ended=at("04:30"))
    found = decide(situation(now="04:40", records=[failed, *done("02:00", "03:00", "04:00")], first_open=5))
    assert launched(found) == [(["01:00"], 1)]


def test_late_reruns_and_first_runs_do_not_share_a_run():
    first = replace(
        situation(now="04:30", records=done("00:00", "02:00"), parallel=9),
        requests={at("00:00"): request(), at("02:00"): request(kind="person")},
    )
    assert decide(first).launches == (
        Launch((at("00:00"),), 1, late=True),
        Launch((at("01:00"), at("02:00"), at("03:00"), at("04:00")), 4),
    )


def test_reruns_obey_slots_order_and_budget():
    assert named(decide(asked("01:00", "02:00", slots_in_use=1)).waiting) == {"01:00": SLOT, "02:00": SLOT}
    assert launched(decide(asked("01:00", "03:00", order="LIFO"))) == [(["03:00"], 1)]
    assert launched(decide(asked("01:00", "02:00", budget=1))) == [(["01:00"], 1)]


def test_last_only_neither_skips_reruns_nor_lets_them_skip_others():
    mixed = situation(now="04:30", records=done("00:00", "01:00"), order="LAST_ONLY", parallel=9)
    found = decide(replace(mixed, requests={at("01:00"): request()}))
    assert launched(found) == [(["04:00"], 1), (["01:00"], 1)]
    assert set(named(found.skipped)) == {"02:00", "03:00"}
    assert launched(decide(asked("01:00", "03:00", order="LAST_ONLY", parallel=2))) == [(["03:00"], 1), (["01:00"], 1)]


def test_a_rerun_has_retries_of_its_own():
    failed = record("01:00", "FAILED", attempt=7, failures=6, ended=at("04:30"))
    before = replace(
        situation(now="04:35", records=[failed], until="01:00", first_open=1),
        requests={at("01:00"): request(attempt=6, failures=5)},
    )
    assert named(decide(before).waiting) == {"01:00": "is tried again at 2013-01-01T04:40Z (attempt 7 failed)"}
    assert decide(replace(before, now=at("04:40"))).launches == (Launch((at("01:00"),), 1, late=True),)
    # One that nobody has begun does not wait for a retry.
    fresh = replace(before, requests={at("01:00"): request(attempt=7, failures=6)})
    assert decide(fresh).launches == (Launch((at("01:00"),), 1, late=True),)


def test_a_rerun_waits_for_its_inputs_from_the_time_it_is_asked_for():
    without = replace(asked("01:00", timeout="hours(2)"), available={})
    assert named(decide(without).waiting) == {"01:00": "waits for flights: raw-flights 2013-01-01T01:00Z"}
    assert named(decide(replace(without, now=at("07:00"))).timed_out) == {
        "01:00": "missing after hours(2): flights: raw-flights 2013-01-01T01:00Z"
    }


def test_an_instance_waits_for_the_reruns_of_what_it_reads():
    holds = PendingReruns(
        {"raw-flights": {at("01:00"): ("collect", at("00:30")), at("02:00"): ("hourly-delays", at("02:00"))}}
    )
    found = decide(replace(situation(now="02:30", parallel=9), pending_reruns=holds))
    assert launched(found) == [(["00:00"], 1), (["02:00"], 1)]
    assert named(found.waiting) == {"01:00": "waits for the rerun of collect 2013-01-01T00:30Z"}


@pytest.mark.parametrize(
    ("state", "known", "alive"),
    [
        ("SUCCEEDED", {"attempt": 2}, True),
        ("FAILED", {"attempt": 2, "failures": 9}, True),
        ("WAITING", {"attempt": 3, "queued_run": "r"}, True),
        ("RUNNING", {"attempt": 3, "run_id": "r"}, True),
        ("WAITING", {"attempt": 3}, True),
        ("FAILED", {"attempt": 3, "failures": 6}, True),
        ("FAILED", {"attempt": 6, "failures": 9}, False),
        ("SUCCEEDED", {"attempt": 3}, False),
        ("KILLED", {"attempt": 3}, False),
        ("TIMED_OUT", {"attempt": 2, "ended": at("04:00")}, True),
        ("TIMED_OUT", {"attempt": 2, "ended": at("06:00")}, False),
    ],
)
def test_a_request_is_alive_until_the_instance_is_over_again(state, known, alive):
    asked_for = request(attempt=2, failures=5)
    assert is_alive(asked_for, record("00:00", state, **known), make_process().retry) is alive


def test_a_clock_that_was_set_back_delays_no_retry():
    """Nor does the difference between the clocks of two machines make one come at once."""
    failed = record("00:00", "FAILED", attempt=1, failures=1, ended=at("04:00"))
    assert launched(decide(situation(now="03:00", records=[failed], until="00:00"))) == [(["00:00"], 1)]
    near = decide(situation(now="03:58", records=[failed], until="00:00"))
    assert named(near.waiting) == {"00:00": "is tried again at 2013-01-01T04:10Z (attempt 1 failed)"}


def test_a_request_that_timed_out_is_over_though_the_clock_was_set_back():
    timed_out = record("01:00", "TIMED_OUT", attempt=1, failures=1, ended=at("04:00"))
    assert not is_alive(request("05:00", failures=0), timed_out, make_process().retry)
