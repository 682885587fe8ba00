"""Which executor gets a run, compared with a plain reading of the rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.instances.rules.coordination import decide
from falcon_assets.instances.rules.executors import (
    ExecutorChoice,
    ExecutorsBusy,
    ExecutorsOffline,
    ExecutorsStarting,
    ExecutorState,
    ExecutorsUnable,
    NoExecutor,
    ObstacleKind,
)
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Situation
from falcon_assets.model.executor import ClusterExecutor, Quota
from falcon_assets.planning.executor_health import Load
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from tests.builders import make_feed, make_process, workload_of
from tests.hours import HOUR, START

LIMIT = st.none() | st.integers(1, 5)
HOURS = 12


@st.composite
def loads(draw: st.DrawFn) -> Load | None:
    cores = draw(st.integers(0, 8))
    if draw(st.booleans()):
        return None
    return Load(cores, draw(st.integers(0, cores)), draw(st.integers(0, 2)), draw(st.integers(0, cores)))


@st.composite
def states(draw: st.DrawFn, name: str) -> ExecutorState:
    endpoint = draw(st.sampled_from(["spark://h:7077", "sc://h:15002", "local[2]"]))
    quota = Quota(jobs=draw(LIMIT), cores=draw(LIMIT))
    return ExecutorState(
        ClusterExecutor(name=name, endpoint=endpoint, quota=quota),
        lacks=draw(st.sampled_from([None, None, None, ("file", "hive")])),
        is_for_others=draw(st.sampled_from([False, False, True])),
        is_stopped=draw(st.sampled_from([False, False, True])),
        offline=draw(st.sampled_from(["", "", "refused"])),
        jobs=draw(st.integers(0, 6)),
        cores=draw(st.integers(0, 6)),
        needs=draw(st.integers(1, 3)),
        load=draw(loads()),
    )


choices = st.integers(1, 5).flatmap(
    lambda number: st.tuples(*(states(f"e{index}") for index in range(number))).map(ExecutorChoice)
)


def has_room(one: ExecutorState) -> bool:
    """Written down once more, without the order in which reasons count."""
    quota = one.executor.quota
    if one.lacks or one.is_for_others or one.offline or one.is_stopped:
        return False
    if quota.jobs is not None and one.jobs >= quota.jobs:
        return False
    if quota.cores is not None and one.cores > 0 and one.cores + one.needs > quota.cores:
        return False
    if one.load is None or not one.executor.endpoint.startswith("spark://"):
        return True
    free = min(one.load.free + max(one.load.own - one.cores, 0), one.load.cores - one.cores)
    return one.load.waiting == 0 and free > 0


@given(choices, st.sets(st.sampled_from(["e0", "e1", "e2"])))
def test_the_least_busy_of_those_with_room_is_chosen(choice: ExecutorChoice, avoid: set[str]) -> None:
    open_ = [one for one in choice.states if has_room(one)]
    best = choice.best(avoid)
    assert (best is None) == (not open_) == (choice.refusal is not None)
    if best is None:
        return
    assert best in open_
    assert best.name not in avoid or all(one.name in avoid for one in open_)
    rivals = [one for one in open_ if (one.name in avoid) == (best.name in avoid)]
    fewest = min(one.load.waiting if one.load else 0 for one in rivals)
    assert (best.load.waiting if best.load else 0) == fewest
    assert best.share == min(one.share for one in rivals if (one.load.waiting if one.load else 0) == fewest)


@given(choices, st.integers(1, 4))
def test_a_run_more_makes_an_executor_no_better(choice: ExecutorChoice, slots: int) -> None:
    best = choice.best()
    if best is None:
        return
    after = choice.with_run(best.name, slots)
    (state,) = [one for one in after.states if one.name == best.name]
    assert state.share >= best.share
    assert (state.jobs, state.cores) == (best.jobs + slots, best.cores + best.needs)
    assert [one for one in after.states if one.name != best.name] == [
        one for one in choice.states if one.name != best.name
    ]


@given(choices)
def test_quotas_are_never_exceeded_and_every_executor_without_a_limit_goes_on(choice: ExecutorChoice) -> None:
    for _ in range(30):
        if (best := choice.best()) is None:
            return
        quota = best.executor.quota
        choice = choice.with_run(best.name, slots=1)
        (state,) = [one for one in choice.states if one.name == best.name]
        assert quota.jobs is None or state.jobs <= quota.jobs
        assert quota.cores is None or state.cores <= max(quota.cores, state.needs)
    assert any(one.executor.quota == Quota() for one in choice.states)


@given(choices)
def test_the_refusal_has_one_obstacle_for_each_that_could_do_it_some_time(choice: ExecutorChoice) -> None:
    refusal = choice.refusal
    if refusal is None:
        return
    able = [one.name for one in choice.states if not (one.lacks or one.is_for_others)]
    assert isinstance(refusal, NoExecutor)
    told = [one.executor for one in refusal.executors]
    assert told == (able or [one.name for one in choice.states])
    answering = [one for one in choice.states if one.name in able and not one.offline]
    starting = any(one.is_stopped for one in answering)
    others = ExecutorsBusy if answering else ExecutorsOffline if able else ExecutorsUnable
    assert isinstance(refusal, ExecutorsStarting if starting else others)
    assert refusal.as_data()["executors"][0]["executor"] == told[0]


@given(choices)
def test_who_does_not_wait_gets_one_that_can_do_it_and_answers_if_there_is_one(choice: ExecutorChoice) -> None:
    (chosen,) = [one for one in choice.states if one.name == choice.at_once()]
    assert not chosen.lacks or all(one.lacks for one in choice.states)
    away = [one.offline or one.is_stopped for one in choice.states if not one.lacks]
    assert not (chosen.offline or chosen.is_stopped) or all(away)


def state(name: str, endpoint: str = "spark://h:7077", **more: object) -> ExecutorState:
    quota = Quota.model_validate(more.pop("quota", {}))
    return ExecutorState(ClusterExecutor(name=name, endpoint=endpoint, quota=quota), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (state("east", lacks=("mysql", "file")), "no executor can do it: east cannot move data from mysql to file"),
        (
            ExecutorState(ClusterExecutor(name="east", endpoint="local", queue="night"), is_for_others=True),
            "no executor can do it: east is for the queue night",
        ),
        (state("east", is_stopped=True), "waits for the executor east, which is being started"),
        (state("east", offline="refused"), "waits for the executor east, which is offline: refused"),
        (
            state("east", quota={"jobs": 2}, jobs=2),
            "waits for the executor east, which is busy: 2 of 2 jobs are in use",
        ),
        (
            state("east", quota={"cores": 4}, cores=3, needs=2),
            "waits for the executor east, which is busy: 3 of 4 cores are in use, and it needs 2 cores",
        ),
        (state("east", load=Load(4, 0, 0)), "waits for the executor east, which is busy: none of its 4 cores is free"),
        (state("east", load=Load(0, 0, 0)), "waits for the executor east, which is busy: none of its 0 cores is free"),
        (
            state("east", load=Load(4, 4, 1)),
            "waits for the executor east, which is busy: 1 application waits there for cores",
        ),
    ],
)
def test_the_reason_in_words(one: ExecutorState, said: str) -> None:
    assert str(ExecutorChoice([one]).refusal) == said


def test_several_reasons_are_one_sentence() -> None:
    choice = ExecutorChoice([state("east", offline="refused"), state("west", quota={"jobs": 1}, jobs=1)])
    assert str(choice.refusal) == (
        "waits for an executor: east is offline: refused; west is busy: 1 of 1 jobs are in use"
    )
    assert choice.refusal and choice.refusal.as_data()["executors"] == [
        {"executor": "east", "obstacle": ObstacleKind.OFFLINE, "text": "is offline: refused"},
        {"executor": "west", "obstacle": ObstacleKind.BUSY, "text": "is busy: 1 of 1 jobs are in use"},
    ]


def test_the_first_that_is_stopped_is_started_and_all_that_ended() -> None:
    def provisioned(name: str, **more: object) -> ExecutorState:
        here = {"endpoint": "sc://127.0.0.1:1", "provision": {"kind": "connect"}}
        return ExecutorState(ClusterExecutor.model_validate({"name": name, **here}), **more)  # type: ignore[arg-type]

    stopped = [provisioned(name, is_stopped=True) for name in ("a", "b")]
    ended, busy = provisioned("c", offline="it ended"), state("d", quota={"jobs": 1}, jobs=1)
    assert ExecutorChoice([busy, *stopped, ended]).to_start == ["a", "c"]
    assert ExecutorChoice([busy, ended, state("e", offline="refused")]).to_start == ["c"]
    assert ExecutorChoice([*stopped, state("f")]).to_start == []  # there is room
    assert ExecutorChoice([replace(stopped[0], lacks=("file", "hive")), busy]).to_start == []


def test_the_figures_of_spark_follow_runs_that_came_and_went_since() -> None:
    seen = Load(cores=8, free=2, waiting=0, own=4)
    assert state("east", cores=4, load=seen).free_cores == 2
    assert state("east", cores=1, load=seen).free_cores == 5  # three cores came back
    assert state("east", cores=7, load=seen).free_cores == 1  # a run that has not reached Spark yet
    assert state("east", cores=9, load=seen).free_cores == 0


def situation(ready: list[int], executors: ExecutorChoice, **more: object) -> Situation:
    return Situation(
        readiness=Readiness(workload_of(make_process(parallel=4), make_feed())),
        now=START + (HOURS - 1) * HOUR,
        until=None,
        since=START,
        first_open=0,
        records=more.pop("records", {}),  # type: ignore[arg-type]
        slots_in_use=0,
        available={"raw-flights": {at(number) for number in ready}},
        executors=executors,
    )


def at(number: int) -> datetime:
    return START + number * HOUR


def test_runs_are_spread_and_those_without_room_wait() -> None:
    choice = ExecutorChoice([state("east", quota={"jobs": 1}), state("west", quota={"jobs": 1})])
    decision = decide(situation([1, 3, 5], choice))
    assert [(one.nominals, one.executor, one.slots) for one in decision.launches] == [
        ((at(1),), "east", 1),
        ((at(3),), "west", 1),
    ]
    assert str(decision.waiting[at(5)]) == (
        "waits for an executor: east is busy: 1 of 1 jobs are in use; west is busy: 1 of 1 jobs are in use"
    )


def test_a_run_gets_as_many_slots_as_its_executor_has() -> None:
    (launch,) = decide(situation([1, 2, 3, 4], ExecutorChoice([state("east", quota={"jobs": 3})]))).launches
    assert (launch.slots, launch.executor, len(launch.nominals)) == (3, "east", 4)


def test_another_attempt_goes_elsewhere_where_it_can() -> None:
    failed = InstanceRecord(at(1), InstanceState.WAITING, attempt=1, executor="east")
    two = ExecutorChoice([state("east"), state("west", jobs=5)])
    assert decide(situation([1], two, records={at(1): failed})).launches[0].executor == "west"
    one = ExecutorChoice([state("east"), state("west", offline="refused")])
    assert decide(situation([1], one, records={at(1): failed})).launches[0].executor == "east"
    done = replace(failed, state=InstanceState.SUCCEEDED)
    assert decide(situation([3], two, records={at(1): done})).launches[0].executor == "east"
