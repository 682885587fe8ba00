"""What queues admit, compared with a plain simulation of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.instances.rules.coordination import decide
from falcon_assets.instances.rules.queues import Admission, QueueForbidden, QueueFull, QueueUnknown, admission, cores_of
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Situation
from falcon_assets.instances.rules.waiting import NoFreeSlot
from falcon_assets.model.queue import Queue
from tests.builders import make_cluster, make_feed, make_process, workload_of
from tests.hours import HOUR, START

HOURS = 12
LIMIT = st.none() | st.integers(1, 6)


@st.composite
def processes(draw: st.DrawFn) -> tuple[list[int], int, int]:
    """Hours that are ready, how many of them may run at once, and the cores of a run."""
    ready = draw(st.lists(st.integers(0, HOURS - 1), unique=True))
    return sorted(ready), draw(st.integers(1, 4)), draw(st.integers(1, 4))


def situation(ready: list[int], parallel: int, admitted: Admission) -> Situation:
    process = make_process(parallel=parallel)
    return Situation(
        readiness=Readiness(workload_of(process, make_feed())),
        now=START + (HOURS - 1) * HOUR,
        until=None,
        since=START,
        first_open=0,
        records={},
        slots_in_use=0,
        available={"raw-flights": {START + number * HOUR for number in ready}},
        admission=admitted,
    )


def stretches(ready: list[int]) -> list[int]:
    """The lengths of runs of neighbours."""
    return [len(list(those)) for _, those in groupby(enumerate(ready), key=lambda one: one[1] - one[0])]


@given(LIMIT, LIMIT, st.lists(processes(), min_size=1, max_size=5))
def test_queues_admit_what_fits_and_no_more(
    jobs: int | None, cores: int | None, those: list[tuple[list[int], int, int]]
) -> None:
    queue, process = Queue(jobs=jobs, cores=cores), make_process()
    used_jobs = used_cores = 0
    for ready, parallel, needs in those:
        admitted = replace(admission("q", queue, process.acl, needs), jobs_used=used_jobs, cores_used=used_cores)
        decision = decide(situation(ready, parallel, admitted))
        free, expected, left = parallel, [], len(ready)
        for length in stretches(ready):
            open_ = jobs is None or used_jobs < jobs
            fits = cores is None or used_cores + needs <= cores or used_cores == 0
            if not (open_ and fits and free):
                break
            slots = min(length, free, length if jobs is None else jobs - used_jobs)
            expected.append(slots)
            free, used_jobs, used_cores, left = free - slots, used_jobs + slots, used_cores + needs, left - length
        assert [one.slots for one in decision.launches] == expected
        assert jobs is None or used_jobs <= jobs
        waiting = {at: reason for at, reason in decision.waiting.items() if at in set(map(at_hour, ready))}
        assert len(waiting) == left
        full = jobs is not None and used_jobs >= jobs
        wanted: object = NoFreeSlot(parallel, False)
        if free and full:
            wanted = QueueFull("q", "jobs", used_jobs, jobs or 0, 1)
        elif free:
            wanted = QueueFull("q", "cores", used_cores, cores or 0, needs)
        assert set(waiting.values()) <= {wanted}


def at_hour(number: int) -> datetime:
    return START + number * HOUR


def test_a_run_that_needs_more_than_all_cores_runs_alone() -> None:
    alone = admission("q", Queue(cores=2), make_process().acl, 8)
    assert (alone.runs, alone.with_more(1, 1).runs) == (1, 0)
    assert str(alone.with_more(1, 1).refusal) == (
        "waits for the queue q: 8 of 2 cores are in use, and it needs 8 cores"
    )


def test_nothing_is_refused_where_there_is_room() -> None:
    assert admission("q", Queue(jobs=1, cores=1), make_process().acl, 1).refusal is None


@pytest.mark.parametrize(
    ("acl", "may"),
    [(None, False), ({"owner": "ann"}, True), ({"owner": "eve", "group": "ann"}, False)],
    ids=["nobody's", "of a user", "of another"],
)
def test_only_processes_of_its_users_may_use_a_queue(acl: dict[str, str] | None, may: bool) -> None:
    found = admission("q", Queue(users=("ann", "bob")), make_process(**({"acl": acl} if acl else {})).acl, 1)
    assert found.refusal == (None if may else QueueForbidden("q", ("ann", "bob")))
    assert (found.jobs > 0, found.runs > 0) == (may, may)
    if not may:
        assert str(found.refusal) == "may not use the queue q, which is for ann, bob"


def test_a_queue_that_is_not_there_admits_nothing_and_says_so() -> None:
    found = admission("q", None, make_process().acl, 1)
    assert (found.jobs, found.refusal) == (0, QueueUnknown("q"))
    assert str(found.refusal) == "waits for the queue q, which FALCON_QUEUES does not have"


@pytest.mark.parametrize(
    ("execute", "properties", "cores"),
    [
        ("local[4]", {}, 4),
        ("local[*]", {}, 16),
        ("local", {"spark.cores.max": "8"}, 1),
        ("spark://h:7077", {"spark.cores.max": "8"}, 8),
        ("yarn", {"spark.executor.instances": "3", "spark.executor.cores": "2"}, 6),
        ("yarn", {"spark.executor.instances": "3"}, 3),
        ("sc://h:15002", {}, 1),
        ("yarn", {"spark.cores.max": "many"}, 1),
    ],
)
def test_cores_of_a_run(execute: str, properties: dict[str, str], cores: int) -> None:
    interfaces = {"write": {"endpoint": "data"}, "execute": {"endpoint": execute}}
    process = make_process(properties=properties)
    assert cores_of(workload_of(process), make_cluster(interfaces=interfaces, properties={}), 16) == cores
