from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import (
    FeedInstanceAvailable,
    FeedInstanceEvicted,
    FeedInstanceWithdrawn,
    FeedVersionEvicted,
    KeptVersion,
    PartitionPushed,
    PushRefused,
)
from falcon_assets.history.events.inputs import Consumption, Inputs
from falcon_assets.history.events.process_instances import CameTooLate, InstanceChanged, RunEnded, RunEnding, RunQueued
from falcon_assets.history.folding.fold import fold, rebuild
from falcon_assets.history.folding.reduce import Rows
from falcon_assets.history.tables import METADATA
from falcon_assets.history.tables.row_values import Consumed, FeedInstanceRow, First
from falcon_assets.planning.instance_record import FeedState, InstanceRecord, InstanceState, LateChange
from tests.hours import hour
from tests.ledger.histories import chunks_of, content, empty, history_of
from tests.properties import examples

T = hour(0)
KEY = ("p", "primary", T)
S = InstanceState


def at(minutes: int) -> datetime:
    return hour(100) + timedelta(minutes=minutes)


def queued(event_id: int, run_id: str, *nominals: datetime) -> Logged:
    return Logged(event_id, RunQueued("p", "primary", nominals or (T,)), run_id)


def changed(
    event_id: int, state: InstanceState, run_id: str | None = None, reason: str = "", inputs: Inputs | None = None
) -> Logged:
    return Logged(event_id, InstanceChanged("p", "primary", T, state, at(event_id), reason, inputs), run_id)


def told(event_id: int, state: InstanceState, before: InstanceState) -> Logged:
    """A command found the instance in a state and gives it another."""
    return Logged(event_id, InstanceChanged("p", "primary", T, state, at(event_id), "by ann", before=before))


def queued_as(event_id: int, run_id: str, attempt: int) -> Logged:
    return Logged(event_id, RunQueued("p", "primary", (T,), (attempt,)), run_id)


def ended(event_id: int, run_id: str, ending: RunEnding, reason: str = "") -> Logged:
    return Logged(event_id, RunEnded(ending, at(event_id), reason), run_id)


def died(event_id: int, run_id: str, reason: str) -> Logged:
    return Logged(event_id, RunEnded(RunEnding.INTERRUPTED, at(event_id), reason, died=True), run_id)


def again(logged: Logged, event_id: int, run_id: str | None = None, **changes: Any) -> Logged:
    """The same in another event, but for the changes."""
    return Logged(event_id, replace(logged.fact, **changes), run_id)


def test_an_instance_keeps_the_version_that_it_ran_with_last() -> None:
    started = again(changed(1, S.RUNNING, "a"), 1, "a", definition=2)
    assert after(started).processes[KEY].definition == 2
    assert after(started, changed(2, S.WAITING)).processes[KEY].definition == 2
    late = again(changed(3, S.RUNNING, "b"), 3, "b", definition=3)
    assert after(started, late).processes[KEY].definition == 3
    assert after(changed(1, S.SUCCEEDED, "a")).processes[KEY].definition is None


OVER = [ended(4, "a", RunEnding.FAILED)]


def after(*facts: Logged) -> Rows:
    rows = Rows()
    rows.apply(facts)
    return rows


SUCCEEDED = (queued(1, "a"), changed(2, S.RUNNING, "a"), changed(3, S.SUCCEEDED, "a"))
SUCCEEDED_ROW = InstanceRecord(T, S.SUCCEEDED, attempt=1, run_id="a", started=at(2), ended=at(3))
RERUN = replace(SUCCEEDED_ROW, attempt=2)
RERUN_STARTED = replace(RERUN, run_id="b", started=at(5), state=S.RUNNING, ended=None)
STARTED = InstanceRecord(T, S.RUNNING, attempt=1, run_id="a", started=at(2))


@pytest.mark.parametrize(
    ("facts", "row"),
    [
        pytest.param([queued(1, "a")], InstanceRecord(T, S.WAITING, attempt=1, queued_run="a"), id="queued"),
        pytest.param(
            [queued(1, "a"), queued(2, "a")], InstanceRecord(T, S.WAITING, attempt=1, queued_run="a"), id="queued-twice"
        ),
        pytest.param([queued(1, "a"), changed(2, S.RUNNING, "a")], STARTED, id="started"),
        pytest.param([queued(1, "a"), changed(2, S.RUNNING, "a"), queued(3, "a")], STARTED, id="queued-after-start"),
        pytest.param(
            [queued(1, "a"), changed(2, S.RUNNING, "a"), changed(3, S.RUNNING, "a")],
            replace(STARTED, started=at(3)),
            id="started-twice-by-one-run",
        ),
        pytest.param([*SUCCEEDED], SUCCEEDED_ROW, id="succeeded"),
        pytest.param([*SUCCEEDED, queued(4, "a")], SUCCEEDED_ROW, id="queued-after-success"),
        pytest.param([changed(2, S.RUNNING, "a")], STARTED, id="manual-run"),
        pytest.param(
            [changed(2, S.RUNNING, "a"), changed(3, S.SUCCEEDED, "a")], SUCCEEDED_ROW, id="manual-run-succeeded"
        ),
        pytest.param(
            [queued(1, "a"), changed(2, S.RUNNING, "m")],
            InstanceRecord(T, S.RUNNING, attempt=2, queued_run="a", run_id="m", started=at(2)),
            id="manual-run-beside-a-queued-one",
        ),
        pytest.param(
            [queued(1, "a"), changed(2, S.RUNNING, "a"), changed(3, S.FAILED, "a", "boom")],
            InstanceRecord(T, S.FAILED, "boom", 1, 1, None, "a", at(2), at(3)),
            id="failed-once",
        ),
        pytest.param(
            [changed(1, S.FAILED, "a", "boom"), queued(2, "b"), changed(3, S.RUNNING, "b")],
            InstanceRecord(T, S.RUNNING, "", 2, 1, None, "b", at(3), None),
            id="retry-keeps-the-count",
        ),
        pytest.param(
            [changed(1, S.FAILED, "a", "boom"), queued(2, "b")],
            InstanceRecord(T, S.WAITING, "", 2, 1, "b", "a", None, at(1)),
            id="retry-queued",
        ),
        pytest.param(
            [changed(1, S.TIMED_OUT, None, "missing"), queued(2, "b")],
            InstanceRecord(T, S.WAITING, "", 1, 1, "b", None, None, at(1)),
            id="rerun-queued-after-a-timeout",
        ),
        pytest.param(
            [changed(1, S.FAILED, "a"), changed(2, S.FAILED, "b", "again")],
            InstanceRecord(T, S.FAILED, "again", 2, 2, None, "b", None, at(2)),
            id="failed-twice",
        ),
        pytest.param(
            [changed(1, S.FAILED, "a"), changed(2, S.TIMED_OUT, None, "raw is missing")],
            InstanceRecord(T, S.TIMED_OUT, "raw is missing", 1, 2, None, "a", None, at(2)),
            id="timed-out-after-a-failure",
        ),
        pytest.param(
            [changed(1, S.SKIPPED, None, "LAST_ONLY")],
            InstanceRecord(T, S.SKIPPED, "LAST_ONLY", ended=at(1)),
            id="skipped",
        ),
        pytest.param(
            [changed(1, S.FAILED, "a", "boom"), changed(2, S.SUCCEEDED, "b")],
            InstanceRecord(T, S.SUCCEEDED, "", 2, 0, None, "b", None, at(2)),
            id="success-resets-the-count",
        ),
        pytest.param(
            [changed(1, S.FAILED, "a", "boom"), ended(2, "a", RunEnding.FAILED, "the run failed")],
            InstanceRecord(T, S.FAILED, "boom", 1, 1, None, "a", None, at(1)),
            id="run-failed-after-its-instance-did",
        ),
        pytest.param([*SUCCEEDED, ended(4, "a", RunEnding.KILLED)], SUCCEEDED_ROW, id="run-killed-after-success"),
        pytest.param(
            [queued(1, "a"), changed(2, S.RUNNING, "a"), ended(3, "x", RunEnding.KILLED)], STARTED, id="another-run"
        ),
        pytest.param(
            [queued(1, "a"), ended(2, "a", RunEnding.FAILED, "why")],
            InstanceRecord(T, S.FAILED, "why", attempt=1, failures=1, ended=at(2)),
            id="run-failed-before-it-began-anything",
        ),
        pytest.param(
            [queued(1, "a"), ended(2, "a", RunEnding.KILLED, "why")],
            InstanceRecord(T, S.KILLED, "why", attempt=1, ended=at(2)),
            id="queued-run-killed",
        ),
        pytest.param(
            [queued(1, "a"), changed(2, S.RUNNING, "a"), ended(3, "a", RunEnding.FAILED, "why")],
            replace(STARTED, state=S.FAILED, reason="why", failures=1, ended=at(3)),
            id="running-run-failed",
        ),
        pytest.param(
            [queued(1, "a"), changed(2, S.RUNNING, "a"), ended(3, "a", RunEnding.KILLED, "why")],
            replace(STARTED, state=S.KILLED, reason="why", ended=at(3)),
            id="running-run-killed",
        ),
        pytest.param(
            [queued(1, "a"), changed(2, S.RUNNING, "a"), changed(3, S.WAITING, "a", "interrupted"), *OVER],
            replace(STARTED, state=S.WAITING, reason="interrupted", ended=at(3)),
            id="running-run-interrupted",
        ),
        pytest.param(
            [queued(1, "a"), changed(2, S.RUNNING, "a"), ended(3, "a", RunEnding.INTERRUPTED, "the daemon ended")],
            replace(STARTED, state=S.WAITING, reason="the daemon ended", ended=at(3)),
            id="running-run-interrupted-without-another-word",
        ),
        pytest.param(
            [queued(1, "a"), ended(2, "a", RunEnding.INTERRUPTED, "the daemon ended")],
            InstanceRecord(T, S.WAITING, attempt=1),
            id="queued-run-interrupted",
        ),
        pytest.param(
            [queued(1, "a"), changed(2, S.RUNNING, "a"), died(3, "a", "killed")],
            replace(STARTED, state=S.WAITING, reason="killed", ended=at(3), deaths=1),
            id="running-run-died",
        ),
        pytest.param(
            [queued(1, "a"), died(2, "a", "killed")],
            InstanceRecord(T, S.WAITING, "killed", attempt=1, ended=at(2), deaths=1),
            id="run-died-before-it-began-anything",
        ),
        pytest.param(
            [one for k in range(4) for one in (queued(2 * k + 1, f"r{k}"), died(2 * k + 2, f"r{k}", "killed"))]
            + [queued(9, "a"), changed(10, S.RUNNING, "a"), died(11, "a", "killed")],
            InstanceRecord(
                *(T, S.FAILED),
                "its run was killed 5 times in a row, perhaps by what it computes: killed",
                *(5, 1, None, "a", at(10), at(11)),
            ),
            id="its-run-died-again-and-again",
        ),
        pytest.param([*SUCCEEDED, queued(4, "b")], replace(RERUN, state=S.WAITING, queued_run="b"), id="rerun-queued"),
        pytest.param(
            [*SUCCEEDED, queued(4, "b"), ended(5, "b", RunEnding.FAILED, "no worker")],
            replace(RERUN, state=S.FAILED, reason="no worker", failures=1, ended=at(5)),
            id="rerun-queued-failed",
        ),
        pytest.param(
            [*SUCCEEDED, queued(4, "b"), ended(5, "b", RunEnding.KILLED, "by ann")],
            replace(RERUN, state=S.KILLED, reason="by ann", started=None, ended=at(5)),
            id="rerun-queued-killed",
        ),
        pytest.param(
            [queued(1, "b"), changed(2, S.RUNNING, "a"), changed(3, S.SUCCEEDED, "a"), ended(4, "b", RunEnding.KILLED)],
            RERUN,
            id="queued-run-killed-after-another-one-finished-it",
        ),
        pytest.param(
            [*SUCCEEDED, queued(4, "b"), changed(5, S.RUNNING, "b"), ended(6, "b", RunEnding.FAILED, "died")],
            replace(RERUN_STARTED, state=S.FAILED, reason="died", failures=1, ended=at(6)),
            id="rerun-started-died",
        ),
        pytest.param(
            [*SUCCEEDED, queued(4, "b"), changed(5, S.RUNNING, "b"), ended(6, "b", RunEnding.KILLED, "by ann")],
            replace(RERUN_STARTED, state=S.KILLED, reason="by ann", ended=at(6)),
            id="rerun-started-killed",
        ),
        pytest.param(
            [changed(2, S.RUNNING, "a"), queued(3, "b"), ended(4, "b", RunEnding.KILLED, "by ann")],
            replace(STARTED, attempt=2),
            id="queued-run-killed-while-another-one-computes",
        ),
    ],
)
def test_process_instance(facts: list[Logged], row: InstanceRecord) -> None:
    rows = after(*facts)
    assert rows.processes == {KEY: row}
    assert rows.feeds == {}


KILLED = replace(STARTED, state=S.KILLED, reason="by ann", ended=at(3))
SUSPENDED = replace(KILLED, state=S.SUSPENDED)
HELD = InstanceRecord(T, S.SUSPENDED, "by ann", attempt=1, ended=at(1))
RUNNING = [queued_as(1, "a", 1), changed(2, S.RUNNING, "a")]


@pytest.mark.parametrize(
    ("facts", "row"),
    [
        pytest.param([told(1, S.SUSPENDED, S.WAITING)], HELD, id="pending-takes-the-attempt"),
        pytest.param([told(1, S.SUSPENDED, S.WAITING), queued_as(2, "a", 1)], HELD, id="planned-in-the-same-moment"),
        pytest.param(
            [queued_as(1, "a", 1), told(3, S.KILLED, S.WAITING)],
            replace(KILLED, started=None),
            id="queued-run-has-it-no-more",
        ),
        pytest.param(
            [queued_as(1, "a", 1), told(3, S.KILLED, S.WAITING), queued_as(4, "a", 1), changed(5, S.RUNNING, "a")],
            replace(KILLED, started=None),
            id="the-run-started-it-in-the-same-moment",
        ),
        pytest.param([*RUNNING, told(3, S.KILLED, S.RUNNING)], KILLED, id="running-killed"),
        pytest.param(
            [*RUNNING, told(3, S.KILLED, S.RUNNING), changed(4, S.FAILED, "a", "cancelled"), *OVER],
            KILLED,
            id="its-run-says-that-it-failed",
        ),
        pytest.param(
            [*RUNNING, told(3, S.SUSPENDED, S.RUNNING), changed(4, S.SUCCEEDED, "a")],
            replace(STARTED, state=S.SUCCEEDED, ended=at(4)),
            id="it-was-published-already",
        ),
        pytest.param(
            [*RUNNING, changed(3, S.SUCCEEDED, "a"), told(4, S.KILLED, S.RUNNING)],
            replace(STARTED, state=S.SUCCEEDED, ended=at(3)),
            id="it-succeeded-meanwhile",
        ),
        pytest.param(
            [*RUNNING, changed(3, S.FAILED, "a", "boom"), told(4, S.KILLED, S.RUNNING)],
            replace(KILLED, attempt=2, failures=1, started=None, ended=at(4)),
            id="it-failed-meanwhile",
        ),
        pytest.param(
            [*RUNNING, told(3, S.KILLED, S.RUNNING), told(4, S.SUSPENDED, S.RUNNING)],
            KILLED,
            id="the-first-command-wins",
        ),
        pytest.param(
            [*RUNNING, told(3, S.SUSPENDED, S.RUNNING), told(4, S.KILLED, S.SUSPENDED)],
            replace(KILLED, attempt=2, started=None, ended=at(4)),
            id="suspended-killed",
        ),
        pytest.param(
            [*RUNNING, told(3, S.SUSPENDED, S.RUNNING), told(4, S.SUSPENDED, S.RUNNING)], SUSPENDED, id="twice"
        ),
        pytest.param(
            [*RUNNING, told(3, S.SUSPENDED, S.RUNNING), told(4, S.WAITING, S.SUSPENDED)],
            replace(SUSPENDED, state=S.WAITING, ended=at(4)),
            id="resumed",
        ),
        pytest.param([*RUNNING, told(3, S.WAITING, S.SUSPENDED)], STARTED, id="resumed-twice"),
        pytest.param(
            [*SUCCEEDED, told(4, S.KILLED, S.SUCCEEDED)],
            replace(KILLED, attempt=2, started=None, ended=at(4)),
            id="rerun",
        ),
        pytest.param(
            [*RUNNING, told(3, S.KILLED, S.RUNNING), queued_as(4, "b", 2), changed(5, S.RUNNING, "b")],
            RERUN_STARTED,
            id="killed-and-run-again",
        ),
    ],
)
def test_commands(facts: list[Logged], row: InstanceRecord) -> None:
    assert after(*facts).processes == {KEY: row}


def test_what_a_failed_run_had_not_begun_is_open_again() -> None:
    begun = [queued(1, "a", hour(0), hour(1)), changed(2, S.RUNNING, "a"), ended(3, "a", RunEnding.FAILED, "killed")]
    assert after(*begun).processes["p", "primary", hour(1)] == InstanceRecord(hour(1), S.WAITING, attempt=1)


def test_every_instance_of_an_ended_run_and_no_other() -> None:
    rows = after(queued(1, "a", hour(0), hour(1)), queued(2, "b", hour(2)), ended(3, "a", RunEnding.KILLED, "by ann"))
    killed = InstanceRecord(hour(0), S.KILLED, "by ann", attempt=1, ended=at(3))
    assert rows.processes == {
        ("p", "primary", hour(0)): killed,
        ("p", "primary", hour(1)): replace(killed, nominal=hour(1)),
        ("p", "primary", hour(2)): InstanceRecord(hour(2), S.WAITING, attempt=1, queued_run="b"),
    }
    assert rows.events == {("p", "primary", hour(0)): 3, ("p", "primary", hour(1)): 3, ("p", "primary", hour(2)): 2}


def test_consumed_is_what_the_last_success_read() -> None:
    first, second = {"flights": (Consumption("raw", T, "v1"),)}, {"flights": (Consumption("raw", T, "v2"),)}
    facts = [changed(1, S.SUCCEEDED, "a", inputs=first), changed(2, S.SUCCEEDED, "b", inputs=second)]
    rows = {KEY: (Consumed("flights", "raw", T, "v2", 0, "primary"),)}
    assert after(*facts).consumed == rows
    assert after(*facts, changed(3, S.FAILED, "c")).consumed == rows


def test_what_a_run_read_it_read_after_it_started() -> None:
    read = changed(6, S.SUCCEEDED, "a", inputs={"flights": (Consumption("raw", T, "v1"),)})
    rows = after(changed(4, S.RUNNING, "a"), read)
    assert rows.started == {KEY: 4}
    assert rows.consumed == {KEY: (Consumed("flights", "raw", T, "v1", 4, "primary"),)}


def test_what_came_too_late_is_remembered_until_it_is_read_again() -> None:
    read = (Consumption("raw", T, "v1"),)
    success = changed(1, S.SUCCEEDED, "a", inputs={"flights": read, "more": read})
    said = Logged(2, CameTooLate("p", "primary", T, "raw", T, "v2", T))
    others = [again(said, 2, feed="other"), again(said, 2, instance=hour(1)), again(said, 2, nominal=hour(1))]
    assert [one.too_late for one in after(success, said, *others).consumed[KEY]] == ["v2", "v2"]
    assert [one.too_late for one in after(success, *others).consumed[KEY]] == [None, None]
    assert [one.too_late for one in after(success, said, success).consumed[KEY]] == [None, None]
    assert after(said).consumed == {}


LATE = (LateChange("rows", "flights", T, "v1", "v2"),)
LANDED = Logged(1, FeedInstanceAvailable("primary", "raw", T, "v1", at(1), 10, 2, 1, signature="s1"))
LANDED_ROW = FeedInstanceRow("v1", at(1), at(1), 1, 10, 2, 1, "s1", version_event=1)
NEWER = Logged(2, FeedInstanceAvailable("primary", "raw", T, "v2", at(2), bytes=11, process="p"), "a")
NEWER_ROW = FeedInstanceRow("v2", at(1), at(2), 2, 11, previous_version="v1", changes=1, run_id="a", version_event=2)
EVICTED = Logged(7, FeedInstanceEvicted("primary", "raw", T, "delete", at(7), 12), "e")
EVICTED_ROW = replace(
    LANDED_ROW, state=FeedState.EVICTED, evicted_at=at(7), evicted_by="e", evicted_bytes=12, event_id=7
)
TAKEN_BACK = Logged(3, FeedInstanceWithdrawn("primary", "raw", T, "p", at(3)))
UNSEEN_ROW = FeedInstanceRow(
    "", at(7), at(7), 7, state=FeedState.EVICTED, evicted_at=at(7), evicted_by="e", evicted_bytes=12
)


@pytest.mark.parametrize(
    ("facts", "row"),
    [
        pytest.param([LANDED], LANDED_ROW, id="landed"),
        pytest.param([LANDED, NEWER], NEWER_ROW, id="version-changed"),
        pytest.param([LANDED, TAKEN_BACK], replace(LANDED_ROW, state=FeedState.MISSING, event_id=3), id="taken-back"),
        pytest.param(
            [LANDED, TAKEN_BACK, again(LANDED, 5, seen_at=at(5))],
            replace(LANDED_ROW, seen_at=at(5), event_id=5, version_event=5),
            id="taken-back-and-there-again",
        ),
        pytest.param(
            [LANDED, again(LANDED, 2, seen_at=at(2), signature="s2")],
            replace(LANDED_ROW, event_id=2, signature="s2"),
            id="same-version",
        ),
        pytest.param(
            [LANDED, NEWER, again(NEWER, 3, "a", seen_at=at(3))],
            replace(NEWER_ROW, event_id=3),
            id="changed-then-same",
        ),
        pytest.param(
            [LANDED, NEWER, again(LANDED, 3, seen_at=at(3))],
            FeedInstanceRow("v1", at(1), at(3), 3, 10, 2, 1, "s1", "v2", 2, version_event=3),
            id="changed-back",
        ),
        pytest.param(
            [LANDED, again(NEWER, 2, "a", late=LATE)], replace(NEWER_ROW, late=True), id="published-by-a-late-rerun"
        ),
        pytest.param(
            [LANDED, again(LANDED, 2, late=LATE)],
            replace(LANDED_ROW, event_id=2),
            id="same-version-by-a-late-rerun",
        ),
        pytest.param(
            [LANDED, again(NEWER, 2, "a", late=LATE), again(LANDED, 3, seen_at=at(3))],
            FeedInstanceRow("v1", at(1), at(3), 3, 10, 2, 1, "s1", "v2", 2, version_event=3),
            id="changed-after-a-late-rerun",
        ),
        pytest.param([LANDED, EVICTED], EVICTED_ROW, id="evicted"),
        pytest.param([LANDED, EVICTED, again(EVICTED, 8, "e", at=at(8), bytes=0)], EVICTED_ROW, id="said-twice"),
        pytest.param([LANDED, EVICTED, again(LANDED, 8, seen_at=at(8))], EVICTED_ROW, id="seen-before-it-went"),
        pytest.param(
            [LANDED, EVICTED, again(LANDED, 8, seen_at=at(8), signature="s2")],
            replace(LANDED_ROW, seen_at=at(8), event_id=8, signature="s2", version_event=8),
            id="landed-anew",
        ),
        pytest.param(
            [LANDED, EVICTED, again(LANDED, 8, "a", seen_at=at(8), signature=None, process="p")],
            replace(LANDED_ROW, seen_at=at(8), event_id=8, signature=None, run_id="a", version_event=8),
            id="computed-anew",
        ),
        pytest.param([EVICTED], UNSEEN_ROW, id="evicted-unseen"),
        pytest.param([again(EVICTED, 0, "e"), LANDED], LANDED_ROW, id="landed-after-it-was-evicted-unseen"),
    ],
)
def test_feed_instance(facts: list[Logged], row: FeedInstanceRow) -> None:
    rows = after(*facts)
    assert rows.feeds == {("primary", "raw", T): row}
    assert rows.processes == {}


def test_what_was_never_there_cannot_be_taken_back() -> None:
    assert after(TAKEN_BACK).feeds == {}


def pushed(event_id: int, partition: str = "p0") -> Logged:
    return Logged(event_id, PartitionPushed("primary", "raw", partition))


def refused(event_id: int, push: int) -> Logged:
    return Logged(event_id, PushRefused("primary", "raw", "p0", push))


@pytest.mark.parametrize(
    ("facts", "waiting"),
    [
        pytest.param([pushed(1)], {"p0": 1}, id="pushed"),
        pytest.param([pushed(1), pushed(2), pushed(3, "p1")], {"p0": 2, "p1": 3}, id="pushed-twice"),
        pytest.param([pushed(1), again(LANDED, 2, pushed="p0", push_event=1)], {}, id="recorded"),
        pytest.param([pushed(1), refused(2, 1)], {}, id="refused"),
        pytest.param([pushed(1), again(LANDED, 2)], {"p0": 1}, id="recorded-by-another-look"),
        pytest.param(
            [pushed(1), pushed(2), again(LANDED, 3, pushed="p0", push_event=1)], {"p0": 2}, id="pushed-while-looking"
        ),
        pytest.param([pushed(1), refused(2, 1), pushed(3)], {"p0": 3}, id="pushed-again"),
        pytest.param([refused(2, 1)], {}, id="answer-to-nothing"),
    ],
)
def test_what_was_pushed_waits_for_its_answer(facts: list[Logged], waiting: dict[str, int]) -> None:
    rows = after(*facts)
    assert {key[2]: event for key, event in rows.pushed.items() if event is not None} == waiting
    is_recorded = any(isinstance(one.fact, FeedInstanceAvailable) for one in facts)
    assert bool(rows.feeds) == is_recorded  # what is pushed is not there before somebody has looked


NOMINALS = st.integers(0, 3).map(hour)
RUNS = st.sampled_from(["a", "b", "c"])
CLUSTERS = st.sampled_from(["primary", "backup"])
VERSIONS = st.sampled_from(["v1", "v2", "v3"])
PARTITIONS = st.sampled_from(["", "p0", "p1"])
READ = st.lists(st.builds(Consumption, st.just("raw"), NOMINALS, st.none() | VERSIONS), max_size=3).map(tuple)
KEPT = st.lists(st.builds(KeptVersion, VERSIONS, st.just("/kept")), max_size=2).map(tuple)
BYTES = st.none() | st.integers(0, 2**63 - 1)
FACT: st.SearchStrategy[Fact] = st.one_of(
    st.builds(
        FeedInstanceAvailable,
        cluster=CLUSTERS,
        feed=st.just("raw"),
        instance=NOMINALS,
        version=VERSIONS,
        seen_at=NOMINALS,
        bytes=BYTES,
        signature=st.none() | VERSIONS,
        process=st.none() | st.just("p"),
        nominal=NOMINALS,
        inputs=st.none() | st.dictionaries(st.sampled_from(["x", "y"]), READ),
        definition=st.none() | st.integers(1, 3),
        source_versions=st.none() | st.dictionaries(CLUSTERS, st.none() | VERSIONS),
        late=st.sampled_from([(), LATE]),
        pushed=st.none() | PARTITIONS,
        push_event=st.none() | st.integers(0, 60),
        kept_versions=st.none() | KEPT,
        restored_by=st.none() | st.just("ann"),
        made_by=st.none() | st.just("bob"),
        environment=st.sampled_from([None, {}, {"python": "3.11", "pyspark": "4.3.0"}]),
    ),
    st.builds(FeedVersionEvicted, CLUSTERS, st.just("raw"), NOMINALS, VERSIONS, at=NOMINALS),
    st.builds(PartitionPushed, CLUSTERS, st.just("raw"), PARTITIONS),
    st.builds(PushRefused, CLUSTERS, st.just("raw"), PARTITIONS, st.integers(0, 60)),
    st.builds(FeedInstanceEvicted, CLUSTERS, st.just("raw"), NOMINALS, st.just("delete"), at=NOMINALS, bytes=BYTES),
    st.builds(CameTooLate, st.just("p"), CLUSTERS, NOMINALS, st.just("raw"), NOMINALS, VERSIONS, at=NOMINALS),
    st.builds(
        InstanceChanged,
        process=st.just("p"),
        cluster=CLUSTERS,
        nominal=NOMINALS,
        state=st.sampled_from(InstanceState),
        at=NOMINALS,
        reason=st.sampled_from(["", "why"]),
        inputs=st.none() | st.dictionaries(st.sampled_from(["x", "y"]), READ),
        before=st.none() | st.sampled_from(InstanceState),
        bytes_copied=BYTES,
    ),
    st.builds(RunQueued, st.just("p"), CLUSTERS, st.lists(NOMINALS, max_size=4, unique=True).map(tuple)),
    st.builds(RunEnded, st.sampled_from(RunEnding), NOMINALS),
)
HISTORIES = st.lists(st.tuples(FACT, st.integers(1, 5), st.none() | RUNS), max_size=40).map(
    lambda steps: [
        Logged(sum(step for _, step, _ in steps[: index + 1]), fact, run_id)
        for index, (fact, _, run_id) in enumerate(steps)
    ]
)
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=5)


@given(HISTORIES, SIZES)
def test_any_chunking_gives_the_same_rows(facts: list[Logged], sizes: list[int]) -> None:
    at_once, in_chunks, following, place = after(*facts), Rows(), chunks_of(facts, sizes), 0
    while True:
        chunk, last, _ = following(place, 1000)
        if last is None:
            break
        part = Rows(
            in_chunks.feeds,
            in_chunks.processes,
            in_chunks.consumed,
            started=in_chunks.started,
            first=in_chunks.first,
            pushed=in_chunks.pushed,
            versions=in_chunks.versions,
            moved=in_chunks.moved,
            kept=in_chunks.kept,
        )
        part.apply(chunk)
        in_chunks.events.update(part.events)
        in_chunks.happened += part.happened
        place = last
    assert in_chunks == at_once


@examples(40)
@given(HISTORIES, SIZES, SIZES)
def test_any_chunking_stores_the_same_rows(
    ledger: Engine, facts: list[Logged], sizes: list[int], other_sizes: list[int]
) -> None:
    empty(ledger)
    assert fold(ledger, history_of(facts, sizes)) == len(facts)
    folded = content(ledger)
    assert rebuild(ledger, history_of(facts)) == len(facts)
    assert content(ledger) == folded
    assert rebuild(ledger, history_of(facts, other_sizes)) == len(facts)
    assert content(ledger) == folded
    assert folded == expected_content(after(*facts), facts[-1].event_id if facts else None)


def test_what_a_process_instance_came_to_first_stays(ledger: Engine) -> None:
    states = [S.RUNNING, S.FAILED, S.RUNNING, S.SUCCEEDED, S.RUNNING, S.SUCCEEDED, S.KILLED]
    rows = after(*(changed(number, state, "a") for number, state in enumerate(states, 1)))
    (first,) = rows.first.values()
    assert first == First(changed(1, S.RUNNING).fact.at, changed(4, S.SUCCEEDED).fact.at)


def is_stale(read: Consumed, there: FeedInstanceRow | None) -> bool:
    return (
        there is not None
        and there.state is FeedState.AVAILABLE
        and there.version not in (read.version, read.too_late)
        and there.version_event > read.read_event
    )


def expected_totals(rows: Rows) -> list[dict[str, object]]:
    counted = Counter(rows.moved)
    for (cluster, feed, _), there in rows.feeds.items():
        counted["feed", feed, cluster, there.state.value] += 1
    for (process, cluster, _), record in rows.processes.items():
        counted["process", process, cluster, record.state.value] += 1
    names = ("what", "entity", "cluster", "label", "number")
    return [dict(zip(names, (*key, Decimal(number)), strict=True)) for key, number in counted.items() if number]


def expected_content(rows: Rows, cursor: int | None) -> dict[str, list[tuple[object, ...]]]:
    """The rows of a fold of all facts at once, in memory, as they are to be stored."""
    values: dict[str, list[dict[str, object]]] = {
        "feed_instances": [
            {"cluster": key[0], "feed": key[1], "instance": key[2], **vars(row), "state": row.state.value}
            for key, row in rows.feeds.items()
        ],
        "process_instances": [
            {
                **{"process": key[0], "cluster": key[1], **vars(row), "state": row.state.value},
                **{"event_id": rows.events[key], "started_event": rows.started.get(key)},
                **{f"first_{name}": at for name, at in vars(rows.first.get(key, First())).items()},
            }
            for key, row in rows.processes.items()
        ],
        "consumed": [
            {
                **{"process": key[0], "cluster": key[1], "nominal": key[2], **vars(one)},
                "stale": is_stale(one, rows.feeds.get((key[1], one.feed, one.instance))),
            }
            for key, consumed in rows.consumed.items()
            for one in consumed
        ],
        "pushed": [
            {"cluster": key[0], "feed": key[1], "partition": key[2], "event_id": event}
            for key, event in rows.pushed.items()
            if event is not None
        ],
        "data_versions": [
            {**vars(row), "id": row.number, "status": row.status.value}
            | {
                name: json.dumps(value, sort_keys=True) if (value := getattr(row, name)) else None
                for name in ("environment", "warnings", "places", "writes")
            }
            for row in rows.versions.known.values()
        ],
        "version_edges": [{"output": key[0], "input": key[1], **vars(row)} for key, row in rows.versions.edges.items()],
        "version_columns": [],  # none of these facts says its columns
        "kept_versions": [
            {"cluster": key[0], "feed": key[1], "instance": key[2], "version": version, **row._asdict()}
            for key, own in rows.kept.items()
            for version, row in own.items()
        ],
        "fold": [] if cursor is None else [{"only": True, "event_id": cursor, "fact_id": cursor}],
        "progress": [],
        "totals": expected_totals(rows),
        "completeness": [],
        "reported_parts": [],
        "transfers": [],
        "deliveries": [],
        "quality_held": [],
        "quality_verdicts": [],  # of a feature, from facts of its own
    }
    return {
        name: sorted(
            (tuple(row[column.name] for column in METADATA.tables[f"falcon.{name}"].c) for row in found), key=repr
        )
        for name, found in values.items()
    }
