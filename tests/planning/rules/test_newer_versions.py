"""Each version of an input is used once, whatever becomes of the instances that use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.instances.rules.coordination import decide
from falcon_assets.instances.rules.newer_versions import LastUse
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Decision, Situation
from falcon_assets.instances.rules.waiting import InputsMissing
from falcon_assets.planning.instance_record import RERUN, InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.retries import settled
from tests.builders import make_feed, make_process, workload_of
from tests.hours import HOUR, START
from tests.properties import examples

CARRIERS = {"name": "rows", "feed": "carriers", "start": "latest(0)", "end": "latest(0)", "newer_than": "last_run"}
FEED = make_feed(name="carriers", snapshot=True, locations={"data": "/carriers"})


def readiness(**process) -> Readiness:
    return Readiness(workload_of(make_process(inputs=[CARRIERS], **process), FEED))


@dataclass
class World:
    """A process, the versions that come, and what becomes of its runs."""

    readiness: Readiness
    now: datetime = START
    present: int = 0
    records: dict[datetime, InstanceRecord] = field(default_factory=dict)
    read: dict[datetime, int] = field(default_factory=dict)
    used: list[tuple[datetime, int]] = field(default_factory=list)
    requests: dict[datetime, RerunRequest] = field(default_factory=dict)

    def decide(self) -> Decision:
        found = decide(
            Situation(
                readiness=self.readiness,
                now=self.now,
                until=None,
                since=START,
                first_open=0,
                records=self.records,
                slots_in_use=sum(one.in_flight for one in self.records.values()),
                available={"carriers": {START + k * HOUR for k in range(200) if START + k * HOUR <= self.now}},
                requests=self.requests,
                last_used=self.last_used,
            )
        )
        for nominal, _ in found.timed_out:
            self.records[nominal] = InstanceRecord(nominal, InstanceState.TIMED_OUT, failures=9, ended=self.now)
        for nominal, _ in found.skipped:
            self.records[nominal] = InstanceRecord(nominal, InstanceState.SKIPPED, ended=self.now)
        return found

    def start(self, decision: Decision) -> list[datetime]:
        nominals = [nominal for launch in decision.launches for nominal in launch.nominals]
        for nominal in nominals:
            known = self.records.get(nominal)
            failures, attempt = (known.failures, known.attempt) if known else (0, 0)
            self.records[nominal] = InstanceRecord(
                nominal, InstanceState.RUNNING, attempt=attempt + 1, failures=failures, run_id="r", started=self.now
            )
            self.read[nominal] = self.present
        return nominals

    def end(self, *, well: bool) -> None:
        for nominal, known in list(self.records.items()):
            if known.in_flight:
                state = InstanceState.SUCCEEDED if well else InstanceState.FAILED
                failures = 0 if well else known.failures + 1
                self.records[nominal] = InstanceRecord(
                    nominal, state, attempt=known.attempt, failures=failures, ended=self.now
                )
                if well:
                    self.used.append((nominal, self.read[nominal]))

    @property
    def last_used(self) -> dict[str, LastUse]:
        if not self.used:
            return {}
        nominal, version = self.used[-1]
        return {"rows": LastUse(f"v{version}", nominal, self.now, f"v{self.present}", START)}


def said(decision: Decision) -> dict[str, str]:
    return {f"{nominal:%H:%M}": str(reason) for nominal, reason in decision.waiting.items()}


def test_the_first_run_uses_whatever_is_there_and_the_next_waits_for_something_newer():
    world = World(readiness(), START + HOUR)
    first = world.decide()
    assert world.start(first) == [START]
    to_use = "waits for rows: carriers newer than the version that 2013-01-01T00:00Z is to use"
    assert said(first) == {"01:00": to_use}
    assert said(world.decide())["01:00"] == to_use
    world.end(well=True)
    found = world.decide()
    assert not found.launches
    assert said(found) == {
        "01:00": "waits for rows: carriers newer than version v0 (used by 2013-01-01T00:00Z at 2013-01-01T01:00Z; "
        "still there, seen at 2013-01-01T00:00Z)"
    }
    world.present = 1
    assert world.start(world.decide()) == [START + HOUR]


def test_who_failed_and_is_tried_again_keeps_its_version():
    world = World(readiness(parallel=5, retry={"policy": "periodic", "delay": "hours(2)", "attempts": 1}), START + HOUR)
    assert world.start(world.decide()) == [START]
    world.end(well=False)
    assert not world.decide().launches
    world.now += 2 * HOUR
    assert world.start(world.decide()) == [START]
    world.end(well=False)  # for good
    assert world.start(world.decide()) == [START + HOUR]


def test_what_is_asked_for_uses_a_version_again():
    world = World(readiness(), START + 3 * HOUR)
    world.start(world.decide())
    world.end(well=True)
    world.requests[START] = RerunRequest(RERUN, 1, 0, START + HOUR)
    assert world.start(world.decide()) == [START]


def test_who_waits_in_vain_times_out():
    world = World(readiness(timeout="hours(2)"), START + HOUR)
    world.start(world.decide())
    world.end(well=True)
    world.now += 2 * HOUR
    (nominal, reason) = world.decide().timed_out[0]
    assert nominal == START + HOUR
    assert str(reason).startswith("missing after hours(2): rows: carriers newer than version v0 (used by ")


def test_the_newest_alone_runs_where_others_are_dropped():
    world = World(readiness(order="LAST_ONLY"), START + 3 * HOUR)
    assert world.start(world.decide()) == [START + 3 * HOUR]
    assert [one.state for one in world.records.values()].count(InstanceState.SKIPPED) == 3


@pytest.mark.parametrize("order", ["FIFO", "LIFO"])
def test_of_a_long_backlog_one_starts_for_each_version(order: str):
    world = World(readiness(order=order, timeout="days(300)"), START + 3000 * HOUR)
    for version in range(3):
        world.present = version
        assert len(world.start(world.decide())) == 1
        world.end(well=True)
        assert not world.decide().launches


ACTIONS = st.lists(st.sampled_from(["hour", "version", "tick", "well", "badly"]), max_size=60)


@examples(400)
@given(
    ACTIONS, st.sampled_from(["FIFO", "LIFO", "LAST_ONLY"]), st.integers(1, 4), st.sampled_from(["hours(3)", "days(9)"])
)
def test_each_version_is_used_once_and_none_is_left_while_somebody_waits(
    actions: list[str], order: str, parallel: int, timeout: str
):
    retry = {"policy": "periodic", "delay": "minutes(90)", "attempts": 1}
    world = World(readiness(order=order, parallel=parallel, timeout=timeout, retry=retry))
    for action in actions:
        if action == "hour":
            world.now += HOUR
        elif action == "version":
            world.present += 1
        elif action == "tick":
            decision = world.decide()
            world.start(decision)
            in_flight = [one for one in world.records.values() if one.in_flight]
            assert len(in_flight) <= 1
            tried_again = [
                one
                for one in world.records.values()
                if one.state is InstanceState.FAILED and not settled(one, world.readiness.workload.retry)
            ]
            is_used = bool(world.used) and world.used[-1][1] == world.present
            if any(isinstance(one, InputsMissing) for one in decision.waiting.values()):
                assert in_flight or tried_again or is_used
        else:
            world.end(well=action == "well")
        versions = [version for _, version in world.used]
        assert versions == sorted(set(versions))
