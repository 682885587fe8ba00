"""Nobody gives up what is being made, or about to be; optional inputs of that kind are waited for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from falcon_assets.instances.rules.coordination import decide
from falcon_assets.instances.rules.looks import Looks
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Situation
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, RerunRequest
from tests.builders import make_feed, make_process, workload_of


def at(time: str) -> datetime:
    return parse_instant(f"2013-01-01T{time}Z")


TIMES = [at(f"{hour:02}:00") for hour in range(4)]
VALIDITY = {"start": "2013-01-01T00:00Z", "end": "2013-01-01T04:00Z"}


def situation(
    name: str,
    reads: str,
    writes: str,
    available: Collection[datetime] = (),
    *,
    optional: bool = False,
    order: str = "FIFO",
    **known,
) -> Situation:
    """An hourly process of four instances that were looked at when they were due, as if it were the day after."""
    process = make_process(
        name=name,
        clusters=[{"name": "primary", "validity": VALIDITY}],
        timeout="hours(3)",
        order=order,
        inputs=[{"name": "i", "feed": reads, "start": "now(0,0)", "end": "now(0,0)", "optional": optional}],
        outputs=[{"name": "o", "feed": writes, "instance": "now(0,0)"}],
    )
    feed = make_feed(name=reads, clusters=[{"name": "primary", "validity": VALIDITY}])
    said = {
        "now": at("23:00"),
        "until": None,
        "since": at("00:00"),
        "first_open": 0,
        "records": {},
        "slots_in_use": 0,
        "available": {reads: set(available)},
    }
    return Situation(Readiness(workload_of(process, feed)), **{**said, **known})


def behind(first: Situation, *, optional: bool = False, order: str = "FIFO", **known) -> Situation:
    """A process that reads what another one makes."""

    def producers(feed: str) -> Sequence[Situation]:
        return [first] if feed == "made" else []

    return situation("second", "made", "out", optional=optional, order=order, producers=producers, **known)


def ended(state: str, time: str, **known) -> dict[datetime, InstanceRecord]:
    return {one: InstanceRecord(one, InstanceState(state), ended=at(time), **known) for one in TIMES}


READY = situation("first", "raw", "made", TIMES)
WITHOUT_DATA = situation("first", "raw", "made")
IN_RUN = replace(WITHOUT_DATA, records={one: InstanceRecord(one, InstanceState.RUNNING, run_id="r") for one in TIMES})


@pytest.mark.parametrize("first", [READY, WITHOUT_DATA, IN_RUN], ids=["ready", "without its own data", "in a run"])
def test_nobody_times_out_while_its_producer_is_not_over(first: Situation) -> None:
    decision = decide(behind(first))
    assert decision.timed_out == ()
    assert {reason.until for reason in decision.waiting.values()} == {None}  # type: ignore[attr-defined]


def test_nor_while_people_hold_its_producer_back() -> None:
    assert decide(behind(replace(READY, since=None, is_suspended=True))).timed_out == ()


def test_a_producer_that_nobody_scheduled_is_not_waited_for() -> None:
    decision = decide(behind(replace(READY, since=None)))
    assert [nominal for nominal, _ in decision.timed_out] == TIMES


@pytest.mark.parametrize(
    ("state", "time", "gone"),
    [("FAILED", "21:00", False), ("FAILED", "19:59", True), ("TIMED_OUT", "20:01", False), ("KILLED", "01:00", True)],
)
def test_the_time_counts_from_the_end_of_the_producers(state: str, time: str, gone: bool) -> None:
    first = replace(WITHOUT_DATA, records=ended(state, time, failures=1), first_open=0)
    first = replace(first, readiness=Readiness(workload_of(_final(first), *first.workload.feeds.values())))
    assert bool(decide(behind(first)).timed_out) is gone


def test_also_where_the_producers_are_behind_what_is_open() -> None:
    first = replace(WITHOUT_DATA, first_open=4, ended=lambda nominal: (at("21:00"), InstanceState.FAILED))
    assert decide(behind(first)).timed_out == ()
    assert len(decide(behind(replace(first, ended=lambda nominal: None))).timed_out) == 4


SKIPPED = ended("SKIPPED", "03:00")


@pytest.mark.parametrize(
    "known",
    [
        pytest.param({"records": SKIPPED}, id="in sight"),
        pytest.param({"first_open": 4, "ended": lambda nominal: (at("03:00"), InstanceState.SKIPPED)}, id="settled"),
    ],
)
def test_with_last_only_what_its_producers_skipped_is_skipped_too(known: dict[str, Any]) -> None:
    first = replace(WITHOUT_DATA, **known)
    second = behind(first, order="LAST_ONLY", now=at("03:00"))
    decision = decide(second)
    assert [(nominal, str(reason)) for nominal, reason in decision.skipped] == [
        (one, f"LAST_ONLY: i: made {format_instant(one)} was skipped") for one in reversed(TIMES)
    ]
    assert (decision.waiting, decision.timed_out) == ({}, ())
    assert decide(behind(first, now=at("03:00"))).skipped == (), "others wait until they time out"
    asked = {TIMES[0]: RerunRequest("rerun", 0, 0, at("03:00"))}
    for requested in (replace(second, requests=asked), _behind_requested(first, asked)):
        assert {nominal for nominal, _ in decide(requested).skipped} == {*TIMES[1:]}


def _behind_requested(first: Situation, asked: dict[datetime, RerunRequest]) -> Situation:
    return behind(replace(first, requests=asked), order="LAST_ONLY", now=at("03:00"))


def test_what_was_due_in_a_pause_waits_from_its_end() -> None:
    looks = Looks(at("23:00"), woke=at("23:00"), slept=at("01:00"))
    decision = decide(situation("first", "raw", "made", looks=looks))
    assert [nominal for nominal, _ in decision.timed_out] == TIMES[:2]


def test_nor_does_anybody_time_out_before_its_data_was_looked_for_again() -> None:
    looks = Looks(at("23:00"), woke=at("22:00"), slept=at("05:00"))
    stale = situation("first", "raw", "made", looks=looks, collected=lambda feed: at("05:00"))
    assert decide(stale).timed_out == ()
    assert len(decide(replace(stale, collected=lambda feed: at("22:01"))).timed_out) == 4


def test_optional_inputs_that_are_about_to_be_made_are_waited_for() -> None:
    known = {"now": at("02:30")}
    decision = decide(behind(replace(READY, **known), optional=True, **known))
    assert decision.launches == ()
    assert {str(one) for one in decision.waiting.values()} == {
        f"waits for i: made 2013-01-01T0{hour}:00Z, which is optional and about to be made" for hour in range(3)
    }
    assert {one.kind for one in decision.waiting.values()} == {"optional_input_pending"}


@pytest.mark.parametrize(
    "first",
    [
        WITHOUT_DATA,
        replace(READY, since=None),
        replace(READY, records=ended("FAILED", "02:25", failures=1)),
        replace(READY, records={one: InstanceRecord(one, InstanceState.SUSPENDED) for one in TIMES}),
    ],
    ids=["without data", "not scheduled", "to be tried again", "suspended"],
)
def test_other_optional_inputs_are_not_waited_for(first: Situation) -> None:
    decision = decide(behind(replace(first, now=at("02:30")), optional=True, now=at("02:30")))
    assert [launch.nominals for launch in decision.launches] == [tuple(TIMES[:3])]


def test_optional_inputs_are_waited_for_as_long_as_required_ones() -> None:
    looks = Looks(at("23:00"), woke=at("00:00"))
    assert len(decide(behind(READY, optional=True, looks=looks)).launches) == 1


def test_what_makes_it_may_wait_for_what_is_about_to_be_made_itself() -> None:
    known = {"now": at("02:30")}
    middle = situation(
        "middle", "base", "made", producers=lambda feed: [situation("base", "raw", "base", TIMES, **known)], **known
    )
    assert decide(behind(middle, optional=True, **known)).launches == ()


def _final(first: Situation):
    return first.workload.entity.model_copy(
        update={"retry": first.workload.retry.model_copy(update={"policy": "final"})}
    )
