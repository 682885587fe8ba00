"""How instances of a run meet, and what becomes of each; the engine is a made one, so there is no Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any, cast

import pytest

from falcon_assets.base.cancellation import Cancellation, CancelledError, cancellable
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.compute.engines.computing.together_joins import AloneError
from falcon_assets.compute.executor import InProcessExecutor
from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.errors import WorkflowError
from falcon_assets.instances.runs import together
from falcon_assets.instances.runs.together import Gathering
from tests.builders import make_cluster, make_feed

FIRST = datetime(2013, 1, 1, tzinfo=UTC)


@dataclass
class Engine:
    """Computes numbers of hours; what it did is in ``alone`` and ``batches``."""

    guilty: frozenset[int] = frozenset()
    refuses: str = ""
    why: str = ""
    before: Callable[[Sequence[int]], object] = lambda hours: None
    engine: str = "made"
    program: str = "made.sql"
    fewest_together: int = 2
    alone: list[int] = field(default_factory=list)
    batches: list[list[int]] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def why_alone(self, *_: object) -> str:
        return self.why

    def compute(self, task: WorkflowTask) -> WorkflowResult:
        hour = task.nominal.hour
        with self.lock:
            self.alone.append(hour)
        if hour in self.guilty:
            raise WorkflowError(f"hour {hour} is bad")
        return WorkflowResult({"out": hour}, "alone")

    def example(self, task: WorkflowTask, result: WorkflowResult) -> object:
        return SimpleNamespace(is_like=lambda other: other.properties.keys() == task.properties.keys())

    def compute_together(self, tasks: Sequence[WorkflowTask], example: object) -> list[WorkflowResult]:
        hours = [task.nominal.hour for task in tasks]
        with self.lock:
            self.batches.append(hours)
        self.before(hours)
        if self.refuses:
            raise AloneError(self.refuses)
        if self.guilty & {*hours}:
            raise ValueError("some row cannot be cast")
        return [WorkflowResult({"out": hour}, "together") for hour in hours]


def task_of(engine: Engine, hour: int, size: int = 1, **properties: str) -> WorkflowTask:
    files = SimpleNamespace(sizes={"a.json": size})
    data = InputData("rows", make_feed(name="rows"), ("file:///rows",), counted=(cast(Any, files),))
    return WorkflowTask(
        process="hourly",
        executor=InProcessExecutor(make_cluster()),
        nominal=FIRST + timedelta(hours=hour),
        workflow=cast(Any, engine),
        entity_root=Path("/entities"),
        inputs=(data,),
        outputs=(),
        properties=properties,
        working="/working",
        run_id="run",
    )


def computed(tasks: Sequence[WorkflowTask], at_once: int, said: list[str] | None = None) -> Mapping[int, object]:
    """By hour: how it was computed, or what failed."""
    gathering = Gathering(len(tasks), at_once, (said if said is not None else []).append)

    def one(task: WorkflowTask) -> object:
        with gathering.instance():
            try:
                return gathering.compute(task).application_id
            except WorkflowError as error:
                return str(error)

    with ThreadPoolExecutor(at_once) as pool:
        return {task.nominal.hour: found for task, found in zip(tasks, pool.map(one, tasks), strict=True)}


def test_one_is_computed_alone_and_the_others_together() -> None:
    engine = Engine()
    found = computed([task_of(engine, hour) for hour in range(8)], at_once=8)
    assert sorted(found.values()) == ["alone"] + ["together"] * 7
    assert len(engine.alone) == len(engine.batches) == 1


def test_a_batch_has_as_many_as_run_at_once_and_the_example_is_made_once() -> None:
    engine = Engine()
    found = computed([task_of(engine, hour) for hour in range(10)], at_once=4)
    assert sorted(found.values()) == ["alone"] + ["together"] * 9
    assert [len(batch) for batch in engine.batches] == [3, 4, 2]


def test_one_at_a_time_meets_nobody() -> None:
    engine = Engine()
    assert set(computed([task_of(engine, hour) for hour in range(3)], at_once=1).values()) == {"alone"}
    assert engine.batches == []


@pytest.mark.parametrize(("at_once", "batches"), [(5, 0), (6, 1)])
def test_few_are_faster_alone(at_once: int, batches: int) -> None:
    engine = Engine(fewest_together=6)
    computed([task_of(engine, hour) for hour in range(6)], at_once=at_once)
    assert len(engine.batches) == batches


def test_an_engine_that_computes_one_at_a_time() -> None:
    engine = Engine(why="it has several outputs")
    assert set(computed([task_of(engine, hour) for hour in range(3)], at_once=3).values()) == {"alone"}
    assert engine.batches == []


@pytest.mark.parametrize("guilty", [{5}, {0, 5}, {3, 4, 5}, {*range(16)}])
def test_a_bad_instance_fails_alone(guilty: set[int]) -> None:
    engine = Engine(guilty=frozenset(guilty))
    found = computed([task_of(engine, hour) for hour in range(16)], at_once=16)
    assert {hour: text for hour, text in found.items() if text not in ("alone", "together")} == {
        hour: f"hour {hour} is bad" for hour in guilty
    }
    assert guilty <= {*engine.alone}


def test_the_batch_is_halved_until_the_guilty_one_is_alone() -> None:
    engine = Engine(guilty=frozenset({9}))
    said: list[str] = []
    found = computed([task_of(engine, hour) for hour in range(17)], at_once=17, said=said)
    assert [*found.values()].count("together") >= 12
    assert len(engine.batches) <= 9
    assert any("halves are tried: some row cannot be cast" in text for text in said)


def test_what_is_refused_is_tried_once() -> None:
    engine, said = Engine(refuses="it joins by FULL JOIN"), list[str]()
    found = computed([task_of(engine, hour) for hour in range(12)], at_once=4, said=said)
    assert set(found.values()) == {"alone"}
    assert len(engine.batches) == 1
    assert said == ["instances are computed one by one: it joins by FULL JOIN"]


def test_instances_of_other_shapes_have_their_own_batch() -> None:
    engine = Engine()
    tasks = [task_of(engine, hour, **({"late": "1"} if hour % 2 else {})) for hour in range(8)]
    found = computed(tasks, at_once=8)
    assert sorted(found.values()) == ["alone"] * 2 + ["together"] * 6
    assert all(len({hour % 2 for hour in batch}) == 1 for batch in engine.batches)


def test_a_batch_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "MOST_BYTES", 30)
    monkeypatch.setattr(together, "MOST_OF_ONE", 20)
    engine = Engine()
    found = computed([task_of(engine, hour, size=21 if hour == 5 else 10) for hour in range(9)], at_once=9)
    assert found[5] == "alone"
    assert [len(batch) for batch in engine.batches] == [3, 3]
    assert sorted(found.values()) == ["alone"] * 3 + ["together"] * 6 or [*found.values()].count("alone") == 3


def test_a_stopped_instance_leaves_and_the_others_go_on() -> None:
    stop = Cancellation()
    engine = Engine(before=lambda hours: stop.cancel("it was killed"))
    gathering = Gathering(4, 4, lambda text: None)

    def one(hour: int) -> str:
        with gathering.instance(), cancellable(stop if hour == 3 else Cancellation()):
            try:
                return gathering.compute(task_of(engine, hour)).application_id
            except CancelledError as error:
                return str(error)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(one, range(4)))
    # The example may be the one that is stopped later; then it was done before.
    assert found[3] in ("it was killed", "alone")
    assert sorted(found[:3]) in (["alone", "together", "together"], ["together"] * 3)


def test_an_interrupted_run_begins_nothing() -> None:
    began, goes_on = Event(), Event()

    def before(hours: Sequence[int]) -> None:
        began.set()
        assert goes_on.wait(60)
        raise ValueError("its jobs were ended")

    engine = Engine(before=before)
    gathering = Gathering(6, 6, lambda text: None)

    def one(hour: int) -> str:
        with gathering.instance():
            try:
                return gathering.compute(task_of(engine, hour)).application_id
            except CancelledError as error:
                return str(error)

    with ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(one, hour) for hour in range(6)]
        assert began.wait(60)
        gathering.end()
        goes_on.set()
        assert sorted(one.result() for one in waiting) == ["alone"] + ["the run is interrupted"] * 5
    assert len(engine.alone) == len(engine.batches) == 1


def test_instances_that_end_before_they_are_computed_are_not_waited_for() -> None:
    engine = Engine()
    gathering = Gathering(3, 3, lambda text: None)

    def one(hour: int) -> str:
        with gathering.instance():
            return "left alone" if hour == 0 else gathering.compute(task_of(engine, hour)).application_id

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(one, range(3))) == ["left alone", "alone", "alone"]


def test_an_instance_that_another_run_has_is_not_waited_for() -> None:
    """Two runs that wait for each other's instances would do so for ever."""
    engine, others_done = Engine(), Event()
    gathering = Gathering(4, 4, lambda text: None)

    def one(hour: int) -> str:
        with gathering.instance():
            if hour == 0:
                with gathering.elsewhere():
                    assert others_done.wait(60)
            return gathering.compute(task_of(engine, hour)).application_id

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(one, hour) for hour in range(4)]
        assert sorted(one.result(60) for one in waiting[1:]) == ["alone", "together", "together"]
        others_done.set()
        assert waiting[0].result(60) == "alone"
