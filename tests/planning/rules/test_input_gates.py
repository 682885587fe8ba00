"""Instances wait for valid data where an input requires it; the decision does not depend on why a gate is closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.instances.rules.coordination import decide
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Decision, Situation
from falcon_assets.instances.rules.waiting import InputInvalid, InputUnchecked
from falcon_assets.planning.reasons import Reason
from tests.builders import make_feed, make_process, workload_of
from tests.hours import START, hour

READ = {"name": "rows", "feed": "raw", "start": "now(0,0)", "end": "now(0,0)"}
CHECKS = [{"name": "enough", "rule": "row_count", "min": 1}]


def invalid(number: int) -> Reason:
    return InputInvalid("raw", "primary", hour(number), "", f"raw {number}", "enough", "0 rows", False, ())


def unchecked(number: int) -> Reason:
    return InputUnchecked("raw", "primary", hour(number), False, "", "", ())


def situation(gates: Mapping[int, Reason], there: int = 6, **declared: Any) -> Situation:
    process = make_process(**{"inputs": [READ], "parallel": 9, "timeout": "hours(1)", **declared})
    feeds = [make_feed(name="raw", checks=CHECKS), make_feed(name="delays-hourly")]
    return Situation(
        readiness=Readiness(workload_of(process, *feeds)),
        now=hour(5),
        until=None,
        since=START,
        first_open=0,
        records={},
        slots_in_use=0,
        available={"raw": set(map(hour, range(there)))},
        gates={"raw": {hour(number): reason for number, reason in gates.items()}},
    )


def launched(decision: Decision) -> set[int]:
    return {one.hour for launch in decision.launches for one in launch.nominals}


def kinds(decision: Decision) -> dict[int, str]:
    return {one.hour: reason.kind for one, reason in decision.waiting.items()}


def test_invalid_and_unchecked_inputs_are_waited_for_without_end() -> None:
    """Those that wait for what is missing time out as ever."""
    found = decide(situation({1: invalid(1), 2: unchecked(2)}))
    assert launched(found) == {0, 3, 4, 5}
    assert kinds(found) == {1: "input_invalid", 2: "input_unchecked"}
    assert not found.timed_out
    assert found.first_open == 0


@pytest.mark.parametrize(
    ("declared", "waits"),
    [
        ({"inputs": [{**READ, "quality": "ignore"}]}, set()),
        ({"inputs": [{**READ, "quality": "require"}]}, {3}),
        ({"inputs": [{**READ, "optional": True}]}, {3}),
        ({"inputs": [{**READ, "start": "now(-1,0)"}]}, {3, 4}),
        ({"inputs": [{**READ, "start": "latest(0)", "end": "latest(0)"}]}, {3}),
        ({"inputs": [{**READ, "quality": "ignore"}, {**READ, "name": "again", "start": "now(-1,0)"}]}, {3, 4}),
    ],
)
def test_what_the_windows_of_inputs_that_require_it_read(declared: dict[str, Any], waits: set[int]) -> None:
    found = decide(situation({3: invalid(3)}, **declared))
    assert (launched(found), set(kinds(found))) == (set(range(6)) - waits, waits)


def test_a_feed_without_errors_is_required_only_where_that_is_declared() -> None:
    plain = make_feed(name="raw", checks=[{**CHECKS[0], "severity": "warn"}])
    at = situation({3: invalid(3)})
    for declared, expected in ((READ, set(range(6))), ({**READ, "quality": "require"}, {0, 1, 2, 4, 5})):
        process = make_process(inputs=[declared], parallel=9)
        readiness = Readiness(workload_of(process, plain, make_feed(name="delays-hourly")))
        assert launched(decide(replace(at, readiness=readiness))) == expected


def test_what_one_writes_is_checked_before_the_next_one_reads_it() -> None:
    before = {"name": "before", "feed": "state", "start": "now(-1,0)", "end": "now(-1,0)"}
    own = {"inputs": [before], "outputs": [{"name": "state", "feed": "state", "instance": "now(0,0)"}]}
    for quality, expected in (("require", [[0]]), ("ignore", [[0, 1, 2, 3, 4, 5]])):
        process = make_process(**{**own, "inputs": [{**before, "quality": quality}]}, parallel=9)
        workload = workload_of(process, make_feed(name="state", checks=CHECKS))
        at = replace(situation({}), readiness=Readiness(workload), available={"state": set[datetime]()}, gates={})
        assert [[one.hour for one in launch.nominals] for launch in decide(at).launches] == expected


@given(st.dictionaries(st.integers(0, 5), st.booleans()), st.integers(0, 6))
def test_whoever_reads_nothing_closed_is_decided_as_without_gates(closed: dict[int, bool], there: int) -> None:
    gates = {number: invalid(number) if is_invalid else unchecked(number) for number, is_invalid in closed.items()}
    found, without = decide(situation(gates, there)), decide(situation({}, there))
    assert launched(found) == launched(without) - closed.keys()
    assert set(found.timed_out) == set(without.timed_out)
    assert {one: str(why) for one, why in found.waiting.items()} == {
        **{one: str(why) for one, why in without.waiting.items()},
        **{hour(one): str(reason) for one, reason in gates.items() if one in launched(without)},
    }
