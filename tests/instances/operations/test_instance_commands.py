"""``rerun``, ``kill``, ``suspend`` and ``resume`` of instances that no run computes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.engine import Engine

from falcon_assets.entities.status import Status, command
from falcon_assets.errors import DeniedError, QueryError, UnknownInstanceError
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.tables import AUDIT, FOLD, RERUNS
from falcon_assets.instances.coordination.coordinator import Coordinator, Outlook
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import CommandResult, InstanceRequest
from falcon_assets.instances.operations.stopping import kill_instances, resume_instances, suspend_instances
from falcon_assets.instances.views.listing import list_instances, summarize_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import load_settings
from tests.builders import cluster_yaml, feed_yaml, process_yaml
from tests.hours import START, hour
from tests.ledger.histories import content, empty
from tests.operations.opening import OpenAt
from tests.operations.rows import feed_row, process_row, write
from tests.processes import forked

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}"
ENTITIES = (
    cluster_yaml("primary")
    + feed_yaml("raw", late_arrival={"cut_off": "hours(2)"})
    + f"""---
kind: process
name: make
schedule: true
parallel: 100
frequency: hours(1)
clusters: [{{name: primary, {SPAN}}}]
inputs: [{{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
late_process: {{policy: final, inputs: [{{input: rows, workflow: {{engine: spark-sql, path: a.sql}}}}]}}
"""
    + process_yaml("plain", "raw", None, acl={"owner": "somebody"})
    + process_yaml("idle", "raw", None)
)
S = InstanceState
STATES: dict[str, dict[str, Any]] = {
    "SUCCEEDED": {"state": "SUCCEEDED"},
    "FAILED": {"state": "FAILED", "failures": 9},
    "to be tried again": {"state": "FAILED", "failures": 1},
    "TIMED_OUT": {"state": "TIMED_OUT", "failures": 1},
    "KILLED": {"state": "KILLED"},
    "SKIPPED": {"state": "SKIPPED", "attempt": 0},
    "SUSPENDED": {"state": "SUSPENDED"},
    "RUNNING": {"state": "RUNNING", "run_id": "r"},
    "queued": {"state": "WAITING", "queued_run": "q"},
}
"""Rows of the ledger; the last instance has none."""
NAMES = [*STATES, "WAITING"]


ME = load_settings().user


ALL = InstanceQuery("make", start=START, end=hour(len(STATES)))


@pytest.fixture
def installation(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    """At half past nine, with an instance in each state."""
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    with open_at("2013-01-01T09:30Z") as opened:
        opened.ledger.catch_up()
        empty(opened.ledger.engine, FOLD)  # what other tests said is not folded once more
        write(opened, *(row(number, **state) for number, state in enumerate(STATES.values())))
        yield opened


def row(number: int, state: str, **more: Any) -> dict[str, Any]:
    return process_row("make", number, state, ended=None if more.get("queued_run") else hour(9), **more)


def asked(query: InstanceQuery = ALL, **more: Any) -> InstanceRequest:
    return InstanceRequest(query, None, "why not", **more)


def states(installation: Installation, query: InstanceQuery = ALL) -> dict[str, str]:
    found = list_instances(installation, query).items
    return {name: one.state.value for name, one in zip(NAMES, found, strict=True)}


def changed(result: CommandResult) -> set[str]:
    return {NAMES[(one.instance.instance - START) // timedelta(hours=1)] for one in result.items if one.changed}


def decided(installation: Installation) -> Outlook:
    coordinator = Coordinator(installation.entities, installation.settings, installation.entities.workloads)
    return coordinator.decide(installation.ledger)


BEFORE = {**{name: state["state"] for name, state in STATES.items()}, "WAITING": "WAITING"}
TERMINAL = {"FAILED", "to be tried again", "TIMED_OUT", "KILLED", "SKIPPED"}
OPEN = {"to be tried again", "RUNNING", "queued", "WAITING"}
COMMANDS: dict[str, tuple[Callable[[Installation, InstanceRequest], CommandResult], set[str], str]] = {
    "rerun": (rerun_instances, TERMINAL, "WAITING"),
    "rerun --force": (
        lambda *told: rerun_instances(*told, RerunOptions(force=True)),
        {*TERMINAL, "SUCCEEDED"},
        "WAITING",
    ),
    "rerun --from-failed": (
        lambda *told: rerun_instances(*told, RerunOptions(from_failed=True, force=True)),
        TERMINAL - {"SKIPPED"},
        "WAITING",
    ),
    "kill": (kill_instances, {*OPEN, "SUSPENDED"}, "KILLED"),
    "suspend": (suspend_instances, OPEN, "SUSPENDED"),
    "resume": (resume_instances, {"SUSPENDED"}, "WAITING"),
}
"""Which instances each command changes, and to what state."""


@pytest.mark.parametrize(("tell", "which", "state"), COMMANDS.values(), ids=COMMANDS)
def test_commands_and_states(
    installation: Installation,
    tell: Callable[[Installation, InstanceRequest], CommandResult],
    which: set[str],
    state: str,
) -> None:
    dry = tell(installation, asked(dry_run=True))
    assert (changed(dry), states(installation)) == (which, BEFORE)
    first = tell(installation, asked())
    after = BEFORE | dict.fromkeys(which, state)
    assert (changed(first), states(installation)) == (which, after)
    second = tell(installation, asked())
    assert (second.changed, states(installation)) == (0, after)
    assert first.as_data()["changed"] == len(which)
    assert {one.instance.state.value for one in first.items if one.changed} == {state}


def test_who_may_not_change_an_entity_may_not_command_its_instances_and_all_is_audited(
    installation: Installation,
) -> None:
    one = asked(InstanceQuery("make", start=hour(1)))
    rerun_instances(installation, one)
    kill_instances(installation, one)
    kill_instances(installation, one)
    kill_instances(installation, asked(dry_run=True))
    plain = InstanceQuery("plain", start=hour(1), end=hour(2))
    with pytest.raises(DeniedError, match="may not suspend instances of process 'plain', which belongs to 'somebody'"):
        suspend_instances(installation, asked(plain))
    with installation.ledger.engine.connect() as connection:
        found = connection.execute(select(AUDIT).order_by(AUDIT.c.id)).all()
    assert [(row.operation, row.result, row.instances, row.first, row.last) for row in found] == [
        ("instance rerun", "done", 1, hour(1), hour(1)),
        ("instance kill", "done", 1, hour(1), hour(1)),
        ("instance kill", "unchanged", 0, None, None),
        ("instance suspend", "denied", 2, hour(1), hour(2)),
    ]
    assert {one.state for one in list_instances(installation, plain).items} == {S.WAITING}


def test_what_is_said_of_an_instance(installation: Installation) -> None:
    kill_instances(installation, asked(InstanceQuery("make", start=hour(9))))
    rerun_instances(installation, asked(InstanceQuery("make", start=hour(1))))
    found = {one.instance: one.as_data() for one in list_instances(installation, ALL).items}
    killed = {"kind": "killed", "text": f"killed by {ME}: why not", "by": ME, "why": "why not"}
    assert found[hour(9)]["reason"] == killed
    assert (found[hour(9)]["attempt"], found[hour(9)]["ended"]) == (1, "2013-01-01T09:30:00+00:00")
    waits = "waits for rows: raw 2013-01-01T01:00Z"
    text = f"is to run again: asked for by {ME}: why not; {waits}"
    reason = {"kind": "rerun_requested", "text": text, "by": ME, "why": "why not", "waits": waits}
    assert (found[hour(1)]["state"], found[hour(1)]["reason"]) == ("WAITING", reason)


def test_lists_count_and_find_what_is_to_run_again_as_waiting(installation: Installation) -> None:
    rerun_instances(installation, asked())
    (make,) = summarize_instances(installation, ALL)
    assert {state.value: number for state, number in make.states.items()} == {
        "WAITING": 7,
        "SUCCEEDED": 1,
        "SUSPENDED": 1,
        "RUNNING": 1,
    }
    for state, number in (("WAITING", 7), ("FAILED", 0), ("SUCCEEDED", 1)):
        for query in (replace(ALL, filters=(("state", state),), sort=sort) for sort in ("instance", "-instance")):
            page = list_instances(installation, query)
            assert (page.total, len(page.items)) == (number, number)
            times = [one.instance for one in page.items]
            assert times == sorted(times, reverse=query.descending)
    first = list_instances(installation, replace(ALL, filters=(("state", "WAITING"),), limit=3))
    rest = list_instances(installation, replace(ALL, filters=(("state", "WAITING"),), after=first.next))
    assert [one.instance for one in (*first.items, *rest.items)] == [hour(n) for n in (1, 2, 3, 4, 5, 8, 9)]


def test_coordinators_launch_what_is_asked_for(installation: Installation) -> None:
    for number in range(len(NAMES)):
        write(installation, feed_row("raw", number))
    rerun_instances(installation, asked(), RerunOptions(force=True, use_latest=True))
    rerun_instances(installation, asked(InstanceQuery("make", start=hour(5))), RerunOptions(late=True))
    runs = decided(installation).runs
    told = {
        (run.launch.nominals, run.tags.get(run_tags.LATE), run.tags.get(run_tags.USE_LATEST)): run.run_key
        for run in runs
    }
    again = tuple(hour(number) for number in range(5))
    assert told.keys() == {(again, None, "true"), ((hour(5),), "true", None), ((hour(9),), None, None)}
    assert "attempt 2" in told[again, None, "true"]


def test_a_rerun_is_waited_for_until_its_entity_runs(installation: Installation) -> None:
    (process,) = (one for one in installation.entities.processes.values() if one.name == "make")
    with installation.ledger.engine.begin() as connection:
        command(connection, process, Status.SUSPENDED, hour(9))
    result = rerun_instances(installation, asked(InstanceQuery("make", start=hour(1))))
    said = "process make is suspended: its instances run again once it is resumed (falcon entity resume make)"
    assert result.notes == (said,)
    assert not decided(installation).runs


def test_who_asks_is_told_that_inputs_were_evicted_and_what_succeeded(installation: Installation) -> None:
    write(installation, feed_row("raw", 1, state="EVICTED", evicted_at=hour(8)))
    result = rerun_instances(installation, asked(InstanceQuery("make", start=hour(0), end=hour(1))))
    assert result.notes == (
        "1 instance of make on primary will not run, the first 2013-01-01T01:00Z: rows: raw 2013-01-01T01:00Z "
        "was evicted on 2013-01-01T08:00Z",
        "1 instance that succeeded is left alone: --force runs them again",
    )


def test_a_kill_ends_a_rerun_that_waits(installation: Installation) -> None:
    rerun_instances(installation, asked(), RerunOptions(force=True))
    kill_instances(installation, asked())
    assert set(states(installation).values()) == {"KILLED"}
    outlook = decided(installation)
    assert not outlook.runs
    with installation.ledger.engine.connect() as connection:
        assert not connection.execute(select(RERUNS)).all()


def test_a_rerun_that_is_suspended_goes_on_when_it_is_resumed(installation: Installation) -> None:
    write(installation, feed_row("raw", 1))
    one = asked(InstanceQuery("make", start=hour(1)))
    rerun_instances(installation, one)
    suspend_instances(installation, one)
    assert states(installation)["FAILED"] == "SUSPENDED"
    assert not decided(installation).runs
    resume_instances(installation, one)
    assert [run.launch.nominals for run in decided(installation).runs] == [(hour(1),)]


def test_a_suspended_instance_does_not_keep_the_others_open(installation: Installation) -> None:
    suspend_instances(installation, asked(InstanceQuery("make", start=hour(9))))
    kill_instances(installation, asked(InstanceQuery("make", start=hour(0), end=hour(8))))
    first_open = decided(installation).decisions["make", "primary"].first_open
    assert first_open == 10
    resume_instances(installation, asked(InstanceQuery("make", start=hour(9))))
    assert set(decided(installation).decisions["make", "primary"].waiting) == {hour(9)}


def test_a_resumed_instance_times_out_from_then_on(installation: Installation, open_at: OpenAt) -> None:
    query = InstanceQuery("make", start=hour(9))
    suspend_instances(installation, asked(query))
    with open_at("2013-01-02T09:00Z") as later:
        resume_instances(later, asked(query))
        (one,) = list_instances(later, query).items
        assert one.reason and one.reason["until"] == "2013-01-02T15:00Z"


def test_an_instance_that_is_yet_to_come(installation: Installation, open_at: OpenAt) -> None:
    query = InstanceQuery("make", start=hour(20))
    kill_instances(installation, asked(query))
    write(installation, feed_row("raw", 20))
    with open_at("2013-01-01T21:30Z") as later:
        assert not decided(later).runs
        (one,) = list_instances(later, query).items
        assert one.state is S.KILLED


def test_a_rebuilt_ledger_says_the_same(installation: Installation) -> None:
    installation.ledger.rebuild()
    query = InstanceQuery("make", start=START, end=hour(9))
    suspend_instances(installation, asked(query))
    resume_instances(installation, asked(replace(query, end=hour(3))))
    kill_instances(installation, asked(replace(query, end=hour(6))))
    before = content(installation.ledger.engine)
    installation.ledger.rebuild()
    assert content(installation.ledger.engine) == before


@pytest.mark.parametrize(
    ("query", "options", "said"),
    [
        (InstanceQuery("make"), RerunOptions(), "say which instances: give --start, --end or --status"),
        (InstanceQuery("idle", start=START), RerunOptions(late=True), "idle declares nothing for late data"),
        (
            InstanceQuery("make", filters=(("state", "SUCCEEDED"),)),
            RerunOptions(from_failed=True),
            "--from-failed asks for FAILED, TIMED_OUT, KILLED only",
        ),
    ],
    ids=["everything", "no late workflow", "no failed state"],
)
def test_what_cannot_be_asked(
    installation: Installation, query: InstanceQuery, options: RerunOptions, said: str
) -> None:
    with pytest.raises(QueryError, match=said):
        rerun_instances(installation, asked(query), options)


def test_an_instance_that_there_is_not(installation: Installation) -> None:
    with pytest.raises(UnknownInstanceError, match="make has no instance 2013-01-01T00:30Z"):
        kill_instances(installation, asked(InstanceQuery("make", start=START + timedelta(minutes=30))))


THOUSANDS = 2_500


def killed_before_statement(step: int, open_at: OpenAt, work: Callable[[Installation], object]) -> bool:
    """Does ``work`` in a process that kills itself before its n-th statement; whether it was killed."""

    def child() -> None:
        left = iter(range(step - 1, -1, -1))

        def statement(*_: object) -> None:
            if next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        with open_at("2013-06-01T00:00Z") as opened:
            opened.ledger.engine.dispose(close=False)  # its connections are the parent's
            event.listen(Engine, "before_cursor_execute", statement)
            work(opened)

    status = os.waitstatus_to_exitcode(os.waitpid(forked(child), 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def requests(installation: Installation) -> int:
    with installation.ledger.engine.connect() as connection:
        return len(connection.execute(select(RERUNS.c.nominal)).all())


@pytest.mark.soak
def test_a_rerun_by_the_thousand_that_is_killed_has_asked_for_all_or_none(
    installation: Installation, open_at: OpenAt
) -> None:
    write(installation, *(row(number, state="TIMED_OUT", failures=1) for number in range(THOUSANDS)))
    query = InstanceQuery("make", filters=(("state", "TIMED_OUT"),))
    for step in count(1):
        was_killed = killed_before_statement(step, open_at, lambda opened: rerun_instances(opened, asked(query)))
        assert requests(installation) in (0, THOUSANDS)
        if not was_killed:
            break
    assert step > 5
    assert requests(installation) == THOUSANDS


def test_reruns_by_the_thousand_while_coordinators_decide(installation: Installation, open_at: OpenAt) -> None:
    write(installation, *(row(number, state="TIMED_OUT", failures=1) for number in range(THOUSANDS)))
    over, problems = Event(), list[object]()

    def coordinate(opened: Installation) -> None:
        while not over.is_set():
            try:
                problems.extend(decided(opened).problems.values())
            except Exception as error:
                problems.append(error)

    with open_at("2013-06-01T00:00Z") as opened:
        thread = Thread(target=coordinate, args=(opened,))
        thread.start()
        try:
            for number in range(0, THOUSANDS, 500):
                query = InstanceQuery("make", start=hour(number), end=hour(number + 499))
                assert rerun_instances(opened, asked(query)).changed == 500
        finally:
            over.set()
            thread.join()
        assert problems == []
