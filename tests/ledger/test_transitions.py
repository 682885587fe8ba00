"""The transitions of instances that a part of history has, as events for receivers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import (
    FeedInstanceAvailable,
    FeedInstanceEvicted,
    FeedInstanceWithdrawn,
)
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import CameTooLate, InstanceChanged, RunEnded, RunEnding, RunQueued
from falcon_assets.history.folding.reduce import Rows
from falcon_assets.planning.instance_record import InstanceState
from tests.ledger.histories import countable_facts, hour, landed_again

T = hour(0)
S = InstanceState
READ = {"rows": (Consumption("raw", T, "v1"),)}


def happened(*facts: tuple[str | None, Fact]) -> list[str]:
    rows = Rows()
    rows.apply(Logged(number, fact, run) for number, (run, fact) in enumerate(facts, 1))
    return [one.event.value for one in rows.happened]


def state(to: InstanceState, run: str | None = "r1", before: InstanceState | None = None) -> tuple[str | None, Fact]:
    read = READ if to is S.SUCCEEDED else None
    return run, InstanceChanged("p", "primary", T, to, T, "why", read, before=before)


def there(version: str = "v1", **more: object) -> tuple[str | None, Fact]:
    return None, FeedInstanceAvailable("primary", "raw", T, version, T, **more)  # type: ignore[arg-type]


QUEUED = RunQueued("p", "primary", (T,))
GONE = FeedInstanceEvicted("primary", "raw", T, "delete", T)
VANISHED = FeedInstanceWithdrawn("primary", "raw", T, "not there", T)
TOO_LATE = CameTooLate("p", "primary", T, "raw", T, "v2", T)
OVER = {ending: RunEnded(ending, T, "over") for ending in RunEnding}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param([("r1", QUEUED), state(S.RUNNING), state(S.SUCCEEDED)], "STARTED SUCCEEDED", id="a run"),
        pytest.param([state(S.RUNNING), state(S.RUNNING)], "STARTED", id="said twice"),
        pytest.param([state(S.RUNNING), state(S.RUNNING, "r2")], "STARTED STARTED", id="another run"),
        pytest.param(
            [state(S.RUNNING), state(S.FAILED), ("r2", QUEUED), state(S.RUNNING, "r2"), state(S.FAILED, "r2")],
            "STARTED FAILED STARTED FAILED",
            id="failed twice",
        ),
        pytest.param([state(S.RUNNING), ("r1", OVER[RunEnding.KILLED])], "STARTED KILLED", id="its run was killed"),
        pytest.param(
            [state(S.RUNNING), ("r1", OVER[RunEnding.INTERRUPTED]), state(S.RUNNING, "r2")],
            "STARTED INTERRUPTED STARTED",
            id="its run was interrupted",
        ),
        pytest.param([("r1", QUEUED), ("r1", OVER[RunEnding.INTERRUPTED])], "", id="interrupted before it started"),
        pytest.param([state(S.TIMED_OUT, None)], "TIMED_OUT", id="timed out"),
        pytest.param([state(S.SKIPPED, None)], "SKIPPED", id="skipped"),
        pytest.param(
            [state(S.SUSPENDED, None, S.WAITING), state(S.WAITING, None, S.SUSPENDED)],
            "SUSPENDED RESUMED",
            id="suspended and resumed",
        ),
        pytest.param([state(S.RUNNING), state(S.SUCCEEDED), (None, TOO_LATE)], "STARTED SUCCEEDED TOO_LATE", id="late"),
        pytest.param([there(), there(), there("v2")], "LANDED LANDED", id="another version"),
        pytest.param([there(source_versions={"east": "v1"})], "REPLICATED", id="a copy"),
        pytest.param([there(), (None, GONE), (None, GONE)], "LANDED EVICTED", id="evicted"),
        pytest.param([there(), (None, VANISHED), there()], "LANDED WITHDRAWN LANDED", id="vanished and came back"),
        pytest.param([(None, VANISHED)], "", id="nobody knew it"),
        pytest.param([there(), (None, GONE), there(restored_by="ann")], "LANDED EVICTED RESTORED", id="restored"),
    ],
)
def test_a_transition_is_an_event(facts: Sequence[tuple[str | None, Fact]], expected: str) -> None:
    assert " ".join(happened(*facts)) == expected


@given(st.integers(1, 60), st.integers(1, 20))
def test_however_history_is_cut_its_events_are_the_same(number: int, size: int) -> None:
    facts = [*countable_facts(number), *landed_again(number // 4)]
    facts = [Logged(event_id, one.fact, one.run_id) for event_id, one in enumerate(facts, 1)]
    whole, cut = Rows(), Rows()
    whole.apply(facts)
    for start in range(0, len(facts), size):
        cut.apply(facts[start : start + size])
    assert whole.happened == cut.happened
    keys = [one.key for one in whole.happened]
    assert len(set(keys)) == len(keys)
