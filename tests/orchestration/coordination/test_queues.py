"""Queues in a real ledger: what runs of other processes use of them, and the reason that lists show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import InvalidDefinitionsError
from falcon_assets.features.triage.answers import TriageAnswers
from falcon_assets.features.triage.known import Work
from falcon_assets.instances.coordination.coordinator import Coordinator, Outlook, PlannedRun
from falcon_assets.instances.coordination.queues import Queues
from falcon_assets.instances.runs.dead_runs import unfinished_runs
from falcon_assets.instances.views.waiting_reasons import recorded_reasons
from falcon_assets.model.queue import Queue
from tests.builders import cluster_yaml, process_yaml
from tests.hours import hour
from tests.world import World, world_of

QUEUES = {"etl": Queue(jobs=2, priority=5), "big": Queue(cores=2), "ours": Queue(users=("ann",))}
NAMES = {"one": "etl", "two": "etl", "free": None, "wide": "big", "wider": "big", "closed": "ours", "lost": "nowhere"}


@dataclass(frozen=True)
class QueuedWorld(World):
    """Processes that only wait for their time, each in a queue."""

    def ask(self, *names: str) -> Outlook:
        settings = replace(self.at("02:30"), queues=QUEUES)
        outlook = Coordinator(self.store, settings, self.store.workloads_of(*names)).decide(self.ledger)
        assert outlook.problems == {}
        return outlook

    def create(self, run: PlannedRun) -> dg.DagsterRun:
        job = self.definitions("02:30").resolve_job_def(run.job_name)
        return self.instance.create_run_for_job(job, tags=dict(run.tags), status=dg.DagsterRunStatus.NOT_STARTED)


def declared() -> str:
    more: dict[str, Any] = {"schedule": True, "parallel": 9}
    made = [
        process_yaml(name, None, None, **more, **({"queue": queue} if queue else {})) for name, queue in NAMES.items()
    ]
    return cluster_yaml() + "".join(made)


world = world_of({"a.yaml": declared(), "a.sql": "SELECT 1"}, QueuedWorld)


def reasons(outlook: Outlook, name: str) -> set[str]:
    return set(map(str, outlook.decisions[name, "primary"].waiting.values()))


def test_runs_of_others_in_the_queue_count_until_they_end(world: QueuedWorld) -> None:
    full = "waits for the queue etl: 2 of 2 jobs are in use"
    found = world.ask("one", "two", "free")
    assert [(run.workload.name, run.launch.slots) for run in found.runs] == [("one", 2), ("free", 3)]
    assert [run.tags["dagster/priority"] for run in found.runs] == ["4", "-1"]
    assert reasons(found, "two") == {full}
    run = world.create(found.runs[0])
    assert world.ask("two").runs == ()
    (workload,) = world.store.workloads_of("two")
    unfinished = unfinished_runs(world.instance)
    queues = Queues(QUEUES, world.store, [(one.job_name, one.tags) for one in unfinished])
    with world.ledger.engine.connect() as connection:
        told = recorded_reasons(
            connection, world.store, [(workload, hour(0))], world.at("02:30").now(), unfinished, queues
        )
    assert told["two", "primary", hour(0)] == {
        "kind": "queue_full",
        "text": full,
        "queue": "etl",
        "what": "jobs",
        "used": 2,
        "limit": 2,
        "needs": 1,
    }
    with world.ledger.engine.connect() as connection:
        answers = TriageAnswers(connection, world.store, replace(world.at("02:30"), queues=QUEUES), hour(2), stores=0)
        assert list(map(str, answers.not_started(Work("two", "primary", hour(0))))) == [full, "()"]
    world.instance.report_run_canceled(run)
    assert [(run.workload.name, run.launch.slots) for run in world.ask("two").runs] == [("two", 2)]


def test_cores_are_those_of_runs(world: QueuedWorld) -> None:
    found = world.ask("wide", "wider")  # on local[2] each has two
    assert [run.workload.name for run in found.runs] == ["wide"]
    assert reasons(found, "wider") == {"waits for the queue big: 2 of 2 cores are in use, and it needs 2 cores"}


def test_who_may_not_use_a_queue_and_what_names_none_waits_and_says_so(world: QueuedWorld) -> None:
    found = world.ask("closed", "lost")
    assert found.runs == ()
    assert reasons(found, "closed") == {"may not use the queue ours, which is for ann"}
    assert reasons(found, "lost") == {"waits for the queue nowhere, which FALCON_QUEUES does not have"}


def test_a_queue_is_for_one_pipeline(tmp_path: Path) -> None:
    one = process_yaml("one", None, None, queue="etl")
    two = process_yaml("two", None, None, queue="etl", pipelines=["late", "default"])
    (tmp_path / "a.yaml").write_text(cluster_yaml() + one + two)
    (tmp_path / "a.sql").write_text("SELECT 1")
    with pytest.raises(InvalidDefinitionsError) as error:
        load_entities(tmp_path)
    (problem,) = error.value.problems
    assert (problem.key_path, problem.message) == (
        "queue",
        "queue 'etl' is used in pipeline 'default' (process 'one'): a queue is for one pipeline",
    )
