"""Executors of a cluster in a real ledger: who gets a run, what the run does with it, and what waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import delete

from falcon_assets.features.triage.answers import TriageAnswers
from falcon_assets.features.triage.known import Work
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.tables import EXECUTORS
from falcon_assets.instances.coordination.coordinator import Outlook, PlannedRun
from falcon_assets.instances.coordination.executors import Executors
from falcon_assets.instances.store.executors import known_executors, note_answer
from falcon_assets.instances.views.waiting_reasons import recorded_reasons
from falcon_assets.planning.executor_health import Answer, Health, Load
from tests.builders import cluster_yaml, feed_yaml, on, process_yaml
from tests.hours import hour
from tests.processes import free_port
from tests.world import World, world_of

SILENT = f"sc://127.0.0.1:{free_port()}"
"""Nothing listens there."""
HERE = "local[2]"


@dataclass(frozen=True)
class ExecutorWorld(World):
    """Processes on clusters with executors."""

    def create(self, run: PlannedRun) -> dg.DagsterRun:
        """The run exists, and has not begun."""
        job = self.definitions("04:30").resolve_job_def(run.job_name)
        tags = {**run.tags, "dagster/run_key": run.run_key}
        return self.instance.create_run_for_job(job, tags=tags, status=dg.DagsterRunStatus.NOT_STARTED)

    def note(self, cluster: str, name: str, answer: Answer) -> None:
        with self.ledger.engine.begin() as connection:
            note_answer(connection, self.store.cluster(cluster), name, answer, datetime.now(UTC))

    def why(self, process: str, cluster: str, number: int) -> dict[str, Any]:
        """What lists say of a waiting instance."""
        workload = self.store.workload(process, cluster)
        assert workload is not None
        with self.ledger.engine.connect() as connection:
            now = self.at("04:30").now()
            return recorded_reasons(connection, self.store, [(workload, hour(number))], now)[
                process, cluster, hour(number)
            ]


def executor(name: str, endpoint: str = HERE, **more: Any) -> dict[str, Any]:
    return {"name": name, "endpoint": endpoint, **more}


def declared() -> str:
    one_each = [executor("east", quota={"jobs": 1}), executor("west", quota={"jobs": 1})]
    wheres = {
        "two": {"executors": [executor("east", SILENT), executor("west")]},
        "few": {"executors": one_each},
        "picky": {
            "executors": [
                executor("lake", capabilities=[["file", "hive"]]),
                executor("night", queue="night"),
            ]
        },
        "primary": {},
    }
    clusters = [cluster_yaml(name, **more) for name, more in wheres.items()]
    feeds = [feed_yaml(f"out-{name}", on(name)) for name in wheres]
    shared: dict[str, Any] = {"schedule": True, "parallel": 9}
    processes = [process_yaml(f"make-{name}", None, f"out-{name}", on(name), **shared) for name in wheres]
    late = [
        process_yaml("late", None, None, on("few"), **shared, pipelines=["late"]),
        process_yaml("move", "out-picky", "out-picky-too", on("picky"), **shared),
    ]
    return "".join([*clusters, *feeds, feed_yaml("out-picky-too", on("picky")), *processes, *late])


world = world_of({"a.yaml": declared(), "a.sql": "SELECT 1 AS n"}, ExecutorWorld)


@pytest.fixture(autouse=True)
def _nothing_known(world: ExecutorWorld) -> Iterator[None]:
    yield
    for run in world.instance.get_runs():
        world.instance.delete_run(run.run_id)
    with world.ledger.engine.begin() as connection:
        connection.execute(delete(EXECUTORS))


def chosen(outlook: Outlook) -> list[tuple[str, str, int]]:
    return [(run.workload.name, run.tags.get(run_tags.EXECUTOR, ""), run.launch.slots) for run in outlook.runs]


def reasons(outlook: Outlook, name: str, cluster: str) -> set[str]:
    return set(map(str, outlook.decisions[name, cluster].waiting.values()))


def test_an_instance_runs_on_the_executor_that_answers_and_that_is_recorded(world: ExecutorWorld) -> None:
    (first,) = world.decide("00:30", "make-two").runs
    assert first.tags[run_tags.EXECUTOR] == "east"  # nobody has asked it yet
    result = world.execute(first, "00:30")
    assert not result.success
    row = world.rows("make-two")[0]
    assert (row["state"], row["attempt"], row["failures"], row["executor"]) == ("WAITING", 1, 0, None)
    assert row["reason_data"]["kind"] == "executor_away"
    assert f"no Spark Connect server answers at {SILENT} (Connection refused)" in row["reason"]
    with world.ledger.engine.connect() as connection:
        known = known_executors(connection, world.store.cluster("two"))
    assert (known["east"].health, known["west"].health) == (Health.SUSPECT, Health.UNKNOWN)
    (second,) = world.decide("00:30", "make-two").runs
    assert (second.tags[run_tags.EXECUTOR], run_tags.attempts_of(second.tags)) == ("west", (2,))
    assert world.execute(second, "00:30").success
    assert world.rows("make-two")[0]["executor"] == "west"
    world.ledger.rebuild()
    assert world.rows("make-two")[0]["executor"] == "west"


def test_a_run_of_a_person_goes_where_somebody_answers(world: ExecutorWorld) -> None:
    world.note("two", "east", Answer("refused"))
    assert world.run_job("two__make_two_job", "03:30", partition_key="2013-01-01T03:00Z").success
    assert world.rows("make-two")[3]["executor"] == "west"
    (run,) = world.instance.get_runs()
    assert run.tags[run_tags.EXECUTOR] == "west"


def test_quotas_hold_across_pipelines_before_runs_exist(world: ExecutorWorld) -> None:
    found = world.decide("00:30", "make-few")
    assert chosen(found) == [("make-few", "east", 1)]
    other = world.decide("01:30", "late")
    assert chosen(other) == [("late", "west", 1)]
    full = "waits for an executor: east is busy: 1 of 1 jobs are in use; west is busy: 1 of 1 jobs are in use"
    third = world.decide("02:30", "make-few")
    assert third.runs == ()
    assert full in reasons(third, "make-few", "few")
    assert world.why("make-few", "few", 2)["text"] == full
    runs = [world.create(run) for run in (*found.runs, *other.runs)]
    assert world.decide("02:30", "make-few").runs == ()  # now they count because they exist
    world.instance.report_run_canceled(runs[0])
    assert [one[1] for one in chosen(world.decide("02:30", "late"))] == ["east"]


def test_what_was_decided_and_never_existed_is_forgotten(world: ExecutorWorld) -> None:
    (run,) = world.decide("04:30", "late").runs
    assert run.launch.executor == "east"
    soon, late = (datetime.now(UTC) + timedelta(minutes=one) for one in (1, 3))
    with world.ledger.engine.connect() as connection:
        counted = [Executors(connection, world.store, "few", at).jobs("east") for at in (soon, late)]
    assert counted == [run.launch.slots, 0]


def test_all_offline_is_said_by_lists_and_triage(world: ExecutorWorld) -> None:
    world.note("two", "east", Answer("refused"))
    world.note("two", "west", Answer("no answer in time"))
    said = "waits for an executor: east is offline: refused; west is offline: no answer in time"
    found = world.decide("03:30", "make-two")
    assert (found.runs, reasons(found, "make-two", "two") & {said}) == ((), {said})
    assert world.why("make-two", "two", 4) == {
        "kind": "executors_offline",
        "text": said,
        "executors": [
            {"executor": "east", "obstacle": "offline", "text": "is offline: refused"},
            {"executor": "west", "obstacle": "offline", "text": "is offline: no answer in time"},
        ],
    }
    with world.ledger.engine.connect() as connection:
        answers = TriageAnswers(connection, world.store, world.at("04:30"), hour(4), stores=0)
        assert list(map(str, answers.not_started(Work("make-two", "two", hour(4))))) == [said, "()"]


def test_the_figures_of_spark_decide_between_those_that_answer(world: ExecutorWorld) -> None:
    world.note("two", "east", Answer(load=Load(4, 1, 0)))
    world.note("two", "west", Answer(load=Load(4, 3, 0)))
    (run,) = world.decide("03:30", "make-two").runs
    assert run.launch.executor == "west"


def test_who_cannot_do_it_or_is_for_another_queue_gets_nothing(world: ExecutorWorld) -> None:
    said = "no executor can do it: lake cannot move data from file to file; night is for the queue night"
    assert world.why("move", "picky", 1)["kind"] == "inputs_missing"
    world.write("out-picky", 0, 1)
    found = world.decide("00:30", "make-picky")
    assert chosen(found) == [("make-picky", "lake", 1)]  # it moves nothing
    workload = world.store.workload("move", "picky")
    assert workload is not None
    with world.ledger.engine.connect() as connection:
        choice = Executors(connection, world.store, "picky", datetime.now(UTC)).choice(workload)
    assert choice is not None
    assert str(choice.refusal) == said


def test_a_cluster_without_executors_is_as_before(world: ExecutorWorld) -> None:
    (run,) = world.decide("00:30", "make-primary").runs
    assert run_tags.EXECUTOR not in run.tags
    with world.ledger.engine.connect() as connection:
        workload = world.store.workload("make-primary", "primary")
        assert workload is not None
        assert Executors(connection, world.store, "primary", datetime.now(UTC)).choice(workload) is None
