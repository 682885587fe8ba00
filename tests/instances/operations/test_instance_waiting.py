"""Waiting until an instance has a state: what happens meanwhile happens where the waiting pauses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from falcon_assets.errors import QueryError, UnknownEntityError, UnknownInstanceError
from falcon_assets.instances.operations import waiting
from falcon_assets.instances.operations.waiting import WaitResult, wait_for_instance
from falcon_assets.instances.store.reruns import request
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.instance_record import LATE, RerunRequest
from tests.hours import hour
from tests.operations.opening import installation_of
from tests.operations.rows import feed_row, process_row, write

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}"
FEED = """---
kind: feed
name: {name}
frequency: hours(1)
schedule: true
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{clusters}]
"""
SOURCE, TARGET = f"{{name: primary, type: source, {SPAN}}}", f"{{name: backup, type: target, {SPAN}}}"
ENTITIES = (
    """
kind: cluster
name: primary
interfaces: {write: {endpoint: data/primary}, execute: {endpoint: "local[1]"}}
---
kind: cluster
name: backup
interfaces: {write: {endpoint: data/backup}, execute: {endpoint: "local[1]"}}
"""
    + FEED.format(name="raw", clusters=f"{SOURCE}, {TARGET}")
    + FEED.format(name="made", clusters=f"{{name: primary, {SPAN}}}")
    + FEED.format(name="make", clusters=f"{{name: primary, {SPAN}}}")
    + f"""---
kind: process
name: make
schedule: true
frequency: hours(1)
clusters: [{{name: primary, {SPAN}}}]
inputs: [{{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: made, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
retry: {{policy: periodic, delay: minutes(10), attempts: 2}}
"""
)
COPY = "raw from primary"
NOW = timedelta(0)


installation = installation_of({"all.yaml": ENTITIES, "a.sql": "SELECT 1"}, "2013-01-01T05:30Z")


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """Does one thing after the other, each when the waiting pauses; a pause more is a failure."""

    def told(*things: Callable[[], object]) -> list[float]:
        rest, pauses = iter(things), list[float]()

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            next(rest)()

        monkeypatch.setattr(waiting, "sleep", pause)
        return pauses

    return told


def result(found: WaitResult) -> tuple[str, bool, str]:
    return found.state, found.reached, found.text


def test_it_pauses_until_the_instance_succeeded(
    installation: Installation, meanwhile: Callable[..., list[float]]
) -> None:
    pauses = meanwhile(
        lambda: write(installation, process_row("make", 1, "WAITING", queued_run="a")),
        lambda: write(installation, process_row("make", 1, "RUNNING", run_id="a")),
        lambda: write(installation, process_row("make", 1, "FAILED", run_id="a", failures=1, ended=hour(2))),
        lambda: write(installation, process_row("make", 1, "SUCCEEDED", run_id="b")),
    )
    found = wait_for_instance(installation, "make", hour(1), kind="process")
    assert result(found) == ("SUCCEEDED", True, "make 2013-01-01T01:00Z on primary is SUCCEEDED")
    assert pauses == [waiting.POLL_SECONDS] * 4
    assert found.as_data() == {
        "entity": "make",
        "kind": "process",
        "cluster": "primary",
        "instance": "2013-01-01T01:00Z",
        "state": "SUCCEEDED",
        "reason": None,
        "attempt": 1,
        "run": "b",
        "started": None,
        "ended": None,
        "definition": None,
        "executor": None,
        "wanted": "SUCCEEDED",
        "reached": True,
        "text": "make 2013-01-01T01:00Z on primary is SUCCEEDED",
    }


OVER: dict[str, tuple[dict[str, Any], str]] = {
    "failed for good": (
        process_row("make", 1, "FAILED", failures=3, ended=hour(2), reason="no such column\nat line 3"),
        "is FAILED and stays so: no such column",
    ),
    "timed out": (process_row("make", 1, "TIMED_OUT", failures=1), "is TIMED_OUT and stays so"),
    "killed": (process_row("make", 1, "KILLED"), "is KILLED and stays so"),
    "skipped": (process_row("make", 1, "SKIPPED", reason="newer"), "is SKIPPED and stays so: newer"),
}


@pytest.mark.parametrize(("row", "text"), OVER.values(), ids=OVER)
def test_what_is_over_is_not_waited_for(
    installation: Installation, meanwhile: Callable[..., list[float]], row: dict[str, Any], text: str
) -> None:
    meanwhile()
    write(installation, row)
    found = wait_for_instance(installation, "make", hour(1), kind="process")
    assert result(found) == (row["state"], False, f"make 2013-01-01T01:00Z on primary {text}")
    assert wait_for_instance(installation, "make", hour(1), wanted=row["state"], kind="process").reached


def test_what_is_asked_to_run_again_is_waited_for(
    installation: Installation, meanwhile: Callable[..., list[float]]
) -> None:
    def asked(kind: str, attempt: int) -> None:
        with installation.ledger.engine.begin() as connection:
            request(connection, {("make", "primary", hour(1)): RerunRequest(kind, attempt, 0, hour(5))})

    write(installation, process_row("make", 1, "KILLED"))
    asked("rerun", 1)
    meanwhile(lambda: write(installation, process_row("make", 1, "SUCCEEDED", attempt=2)))
    assert wait_for_instance(installation, "make", hour(1), kind="process").reached
    asked("rerun", 2)  # of what succeeded
    pauses = meanwhile(lambda: write(installation, process_row("make", 1, "SUCCEEDED", attempt=3)))
    assert (wait_for_instance(installation, "make", hour(1), kind="process").reached, len(pauses)) == (True, 1)
    asked(LATE, 3)
    meanwhile()
    assert wait_for_instance(installation, "make", hour(1), kind="process").reached


def test_the_time_is_over(installation: Installation, meanwhile: Callable[..., list[float]]) -> None:
    meanwhile()
    text = "make 2013-01-01T01:00Z on primary is WAITING and not SUCCEEDED: the timeout is over"
    found = wait_for_instance(installation, "make", hour(1), timeout=NOW, kind="process")
    assert result(found) == ("WAITING", False, text)


def test_a_feed_is_there_when_it_is_available(
    installation: Installation, meanwhile: Callable[..., list[float]]
) -> None:
    pauses = meanwhile(lambda: write(installation, feed_row("raw", 1)))
    found = wait_for_instance(installation, "raw", hour(1), cluster="primary")
    assert result(found) == ("AVAILABLE", True, "raw 2013-01-01T01:00Z on primary is AVAILABLE")
    assert (found.as_data()["kind"], len(pauses)) == ("feed", 1)
    assert wait_for_instance(installation, "raw", hour(1), wanted="SUCCEEDED", cluster="primary").reached
    write(installation, feed_row("raw", 1, state="EVICTED", evicted_at=hour(3)))
    found = wait_for_instance(installation, "raw", hour(1), cluster="primary")
    text = "raw 2013-01-01T01:00Z on primary is EVICTED: it will not come back by itself"
    assert result(found) == ("EVICTED", False, text)


def test_a_feed_does_not_come_where_what_brings_it_is_over(
    installation: Installation, meanwhile: Callable[..., list[float]]
) -> None:
    meanwhile()
    write(installation, process_row("make", 1, "KILLED"), process_row(COPY, 1, "TIMED_OUT", "backup", failures=4))
    assert wait_for_instance(installation, "made", hour(1)).text == (
        "made 2013-01-01T01:00Z on primary is MISSING: make 2013-01-01T01:00Z is KILLED and stays so"
    )
    assert wait_for_instance(installation, "raw", hour(1), cluster="backup").text == (
        "raw 2013-01-01T01:00Z on backup is MISSING: raw from primary 2013-01-01T01:00Z is TIMED_OUT and stays so"
    )
    write(installation, process_row("make", 1, "RUNNING"))
    assert wait_for_instance(installation, "made", hour(1), timeout=NOW).text.endswith("the timeout is over")


MISTAKES: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "both": ({"name": "make"}, UnknownEntityError, "there is a feed and a process 'make': say which one with --type"),
    "unknown": (
        {"name": "mode"},
        UnknownEntityError,
        r"there is no process or feed 'mode' \(did you mean 'ma[dk]e'\?\)",
    ),
    "clusters": ({"name": "raw"}, UnknownEntityError, r"on several clusters: .* --cluster \(primary, backup\)"),
    "cluster": ({"name": "made", "cluster": "moon"}, UnknownEntityError, "'made' is not on cluster 'moon'; it is on"),
    "instance": ({"name": "made", "instance": hour(-1)}, UnknownInstanceError, "its validity starts at"),
    "state": ({"name": "made", "wanted": "KILLED"}, QueryError, "is never KILLED: it is a feed; wait for AVAILABLE"),
}


@pytest.mark.parametrize(("asked", "error", "text"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(installation: Installation, asked: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        wait_for_instance(installation, **{"instance": hour(1), **asked})
