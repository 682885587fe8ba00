"""What coordinators make of processes that read earlier instances of their own outputs, simulated to the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.instances.rules.coordination import decide
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Decision, Situation
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, Launch
from tests.builders import make_feed, make_process, workload_of
from tests.hours import HOUR, START, hour

RAW = {"name": "rows", "feed": "raw", "start": "now(0,0)", "end": "now(0,0)"}
RETRY = {"policy": "periodic", "delay": "hours(1)", "attempts": 1}


def situation(now: int, raw: Iterable[int], state: Iterable[int] = (), lag: int = 1, **process) -> Situation:
    before = {"name": "before", "feed": "state", "start": f"now(-{lag},0)", "end": f"now(-{lag},0)"}
    declared = make_process(
        **{
            "inputs": [RAW, before],
            "outputs": [{"name": "state", "feed": "state", "instance": "now(0,0)"}],
            "timeout": "hours(3)",
            "retry": RETRY,
            **process,
        }
    )
    return Situation(
        readiness=Readiness(workload_of(declared, *(make_feed(name=name) for name in ("raw", "state")))),
        now=hour(now),
        until=None,
        since=START,
        first_open=0,
        records={hour(one): InstanceRecord(hour(one), InstanceState.SUCCEEDED, attempt=1) for one in state},
        slots_in_use=0,
        available={"raw": set(map(hour, raw)), "state": set(map(hour, state))},
    )


def launched(decision: Decision) -> list[tuple[list[int], int]]:
    return [([one.hour for one in launch.nominals], launch.slots) for launch in decision.launches]


def test_one_run_carries_those_that_follow_from_each_other() -> None:
    found = decide(situation(9, range(6), parallel=4))
    assert launched(found) == [([0, 1, 2, 3, 4, 5], 1)]
    assert {one.hour: str(why) for one, why in found.waiting.items()} == {
        6: "waits for rows: raw 2013-01-01T06:00Z, before: state 2013-01-01T05:00Z",
        7: "waits for rows: raw 2013-01-01T07:00Z, before: state 2013-01-01T06:00Z",
        8: "waits for rows: raw 2013-01-01T08:00Z, before: state 2013-01-01T07:00Z",
        9: "waits for rows: raw 2013-01-01T09:00Z, before: state 2013-01-01T08:00Z",
    }


@pytest.mark.parametrize("order", ["FIFO", "LIFO"])
def test_those_that_look_back_farther_go_in_turn_too(order: str) -> None:
    assert launched(decide(situation(9, range(10), lag=3, parallel=2, order=order))) == [(list(range(10)), 1)]


def test_no_more_than_may_be_launched() -> None:
    limited = replace(situation(9, range(10)), budget=4)
    assert launched(decide(limited)) == [([0, 1, 2, 3], 1)]


def test_it_stops_where_one_is_in_a_run_or_waits_for_a_retry() -> None:
    at = situation(9, range(10))
    for record in (
        InstanceRecord(hour(3), InstanceState.RUNNING, attempt=1, run_id="r"),
        InstanceRecord(hour(3), InstanceState.FAILED, attempt=1, failures=1, run_id="r", ended=hour(9)),
    ):
        assert launched(decide(replace(at, records={hour(3): record}))) == [([0, 1, 2], 1)]


def test_nobody_times_out_whose_turn_has_not_come() -> None:
    """A long backlog: the last one waits for hours; only what nobody is to write is given up."""
    found = decide(situation(20, [0, 1, 2, 4, 5], state=[0, 1, 2]))
    assert [one.hour for one, _ in found.timed_out] == [3]
    assert {4, 5, 17} <= {one.hour for one in found.waiting}


def test_what_follows_from_a_failure_goes_on_when_it_is_mended() -> None:
    failed = InstanceRecord(hour(1), InstanceState.FAILED, attempt=2, failures=2, run_id="r", ended=hour(3))
    at = situation(20, range(21), state=[0])
    stuck = decide(replace(at, records={**at.records, hour(1): failed}))
    assert (stuck.launches, stuck.timed_out) == ((), ())
    mended = situation(20, range(21), state=[0, 1])
    assert launched(decide(mended)) == [(list(range(2, 21)), 1)]


@given(
    lag=st.integers(1, 3),
    landing=st.lists(st.integers(0, 30), min_size=12, max_size=12),
    failing=st.sets(st.tuples(st.integers(0, 11), st.integers(1, 2))),
    order=st.sampled_from(["FIFO", "LIFO"]),
    parallel=st.integers(1, 3),
)
def test_to_the_end(lag: int, landing: list[int], failing: set[tuple[int, int]], order: str, parallel: int) -> None:
    """Everything runs that can, each after what it reads, however data lands and runs fail."""
    validity = [{"name": "primary", "validity": {"start": "2013-01-01T00:00Z", "end": "2013-01-01T12:00Z"}}]
    at = situation(0, (), lag=lag, order=order, parallel=parallel, timeout="hours(90)", clusters=validity)
    records: dict[datetime, InstanceRecord] = {}
    for now in range(40):
        raw = {hour(one) for one in range(12) if landing[one] <= now}
        while True:
            done = {one for one, record in records.items() if record.state is InstanceState.SUCCEEDED}
            found = decide(replace(at, now=hour(now), records=records, available={"raw": raw, "state": done}))
            assert not found.timed_out
            for launch in found.launches:
                _execute(launch, records, raw, lag, failing, hour(now))
            if not found.launches:
                break
    over = {one for one in range(12) if {(one, 1), (one, 2)} <= failing}  # failed for good
    stuck = {one for one in range(12) if over & set(range(one, -1, -lag))}
    succeeded = {one.hour for one, record in records.items() if record.state is InstanceState.SUCCEEDED}
    assert succeeded == set(range(12)) - stuck


def _execute(
    launch: Launch,
    records: dict[datetime, InstanceRecord],
    raw: set[datetime],
    lag: int,
    failing: set[tuple[int, int]],
    now: datetime,
) -> None:
    """A run: one after the other, and what needs one that failed is left alone."""
    for nominal in launch.nominals:
        known = records.get(nominal, InstanceRecord(nominal, InstanceState.WAITING))
        before = nominal - lag * HOUR
        ready = before < START or (before in records and records[before].state is InstanceState.SUCCEEDED)
        attempt = known.attempt + 1
        if not (ready and nominal in raw):
            records[nominal] = replace(known, attempt=attempt)
            continue
        tries = known.failures + 1
        if (nominal.hour, tries) in failing:
            records[nominal] = replace(
                known, state=InstanceState.FAILED, attempt=attempt, failures=tries, ended=now, run_id="r"
            )
        else:
            records[nominal] = replace(known, state=InstanceState.SUCCEEDED, attempt=attempt, failures=0, run_id="r")
