from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias

import pytest

from falcon_assets.errors import FalconError
from falcon_assets.features.entities.results import EntityState, OperationResult, Request
from falcon_assets.features.entities.status import entity_states, resume_entities, schedule_entities, suspend_entities
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from tests.features.entities.trees import request
from tests.operations.opening import OpenAt, installation_of

SIX = "2013-01-03T06:00Z"
SPAN = "clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]"
FEED = """
---
kind: feed
name: %s
frequency: hours(1)
locations: {data: "/%s/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
"""
ENTITIES = f"""
kind: cluster
name: primary
interfaces: {{write: {{endpoint: data/primary}}, execute: {{endpoint: "local[1]"}}}}
{FEED % ("raw", "raw")}{SPAN}
{FEED % ("both", "both")}{SPAN}
---
kind: process
name: both
schedule: true
frequency: hours(1)
inputs: [{{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: both, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
{SPAN}
"""


installation = installation_of({"all.yaml": ENTITIES, "a.sql": "SELECT 1"}, SIX)


Command: TypeAlias = Callable[[Installation, Request], OperationResult]


def state(kind: str, name: str, status: str, hour: int = 6, *, commanded: bool = False) -> EntityState:
    return EntityState(kind, name, status, parse_instant(SIX) + timedelta(hours=hour - 6), commanded)


def test_states_are_those_that_are_declared(installation: Installation) -> None:
    process = state("process", "both", "RUNNING")
    assert entity_states(installation) == [
        state("feed", "raw", "SUBMITTED"),
        state("feed", "both", "SUBMITTED"),
        process,
    ]
    assert entity_states(installation, "process") == [process]


def test_an_entity_is_scheduled_suspended_and_resumed(installation: Installation, open_at: OpenAt) -> None:
    story = [
        (schedule_entities, "RUNNING", 7),
        (suspend_entities, "SUSPENDED", 8),
        (suspend_entities, "SUSPENDED", 8),
        (resume_entities, "RUNNING", 10),
    ]
    before = entity_states(installation, "feed")[0]
    for hour, (command, status, since) in enumerate(story, 7):
        with open_at(f"2013-01-03T{hour:02}:00Z") as later:
            after = state("feed", "raw", status, since, commanded=True)
            assert command(later, request("raw")).statuses == ((before, after),)
            assert entity_states(later, "feed")[0] == after
        before = after


def test_nothing_to_do_leaves_it_to_the_definition(installation: Installation) -> None:
    declared = state("process", "both", "RUNNING")
    assert schedule_entities(installation, request("both", kind="process")).statuses == ((declared, declared),)
    assert entity_states(installation, "process") == [declared]


def test_kind_tells_a_feed_from_a_process(installation: Installation) -> None:
    suspend_entities(installation, request("both", kind="process"))
    schedule_entities(installation, request("both", kind="feed"))
    assert entity_states(installation)[1:] == [
        state("feed", "both", "RUNNING", commanded=True),
        state("process", "both", "SUSPENDED", commanded=True),
    ]


WRONG = {
    "suspend what is submitted": (
        suspend_entities,
        request("raw"),
        "feed 'raw': what is SUBMITTED cannot be suspended",
    ),
    "resume what is submitted": (
        resume_entities,
        request("raw"),
        "feed 'raw': what is SUBMITTED cannot be resumed (use schedule)",
    ),
    "two of that name": (
        suspend_entities,
        request("both"),
        "there is a feed and a process 'both': say which one with --kind",
    ),
    "a typing error": (suspend_entities, request("raww"), "there is no feed or process 'raww' (did you mean 'raw'?)"),
    "a cluster": (
        suspend_entities,
        request("primary"),
        "'primary' is a cluster: only feeds and processes are scheduled",
    ),
    "not of that kind": (suspend_entities, request("raw", kind="process"), "there is no process 'raw'; there is: both"),
}


@pytest.mark.parametrize(("command", "asked", "message"), WRONG.values(), ids=WRONG)
def test_wrong_commands_are_answered_in_a_sentence_and_change_nothing(
    installation: Installation, command: Command, asked: Request, message: str
) -> None:
    before = entity_states(installation)
    with pytest.raises(FalconError) as caught:
        command(installation, asked)
    assert str(caught.value) == message
    assert entity_states(installation) == before
