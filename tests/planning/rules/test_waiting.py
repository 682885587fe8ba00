"""Reasons: what they say to people and to programs, and that every class of reason is in a list or a decision."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from falcon_assets.instances.rules.readiness import MissingInput
from falcon_assets.instances.rules.waiting import (
    GIVEN_UP,
    NOT_READY,
    TAKEN,
    GivenUp,
    InputEvicted,
    InputInvalid,
    InputSkipped,
    InputsMissing,
    InputsTimedOut,
    InputUnchecked,
    InRun,
    InstanceSuspended,
    NewerIsReady,
    NoFreeSlot,
    OptionalInputPending,
    ProcessSuspended,
    RerunPending,
    RetryDelayed,
    TurnPending,
    Waiting,
)
from falcon_assets.planning.reasons import Reason

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
LACKING = tuple(MissingInput("flights", "raw-flights", NOON + k * timedelta(hours=1)) for k in range(3))
MISSING = InputsMissing(LACKING, 2, NOON)
NAMED = ", ".join(f"flights: raw-flights 2013-01-01T{hour}:00Z" for hour in (12, 13, 14)) + ", ... and 2 more"

SAID: list[tuple[Reason, str, str]] = [
    (InRun("r1"), "in_run", "is in run r1"),
    (InstanceSuspended(), "instance_suspended", "is suspended"),
    (ProcessSuspended(), "process_suspended", "does not run by itself: it is not scheduled, or suspended"),
    (
        RetryDelayed(NOON, 2, "failed"),
        "retry_delayed",
        "is tried again at 2013-01-01T12:00Z (attempt 2 failed)",
    ),
    (MISSING, "inputs_missing", f"waits for {NAMED}"),
    (RerunPending("clean", NOON), "rerun_pending", "waits for the rerun of clean 2013-01-01T12:00Z"),
    (
        OptionalInputPending(LACKING[0]),
        "optional_input_pending",
        "waits for flights: raw-flights 2013-01-01T12:00Z, which is optional and about to be made",
    ),
    (
        InputInvalid("clicks", "primary", NOON, "", "clicks 2013-01-01T12:00Z", "enough", "2 rows", False, ("show",)),
        "input_invalid",
        "waits until clicks 2013-01-01T12:00Z is valid: rule enough failed: 2 rows",
    ),
    (
        InputInvalid("sums", "primary", NOON, "made from", "clicks 2013-01-01T12:00Z", "enough", "2 rows", True, ()),
        "input_invalid",
        "waits until sums 2013-01-01T12:00Z is valid: made from invalid clicks 2013-01-01T12:00Z, "
        "which was replaced since, rule enough failed",
    ),
    (
        InputUnchecked("clicks", "primary", NOON, False, "", "no Spark", ()),
        "input_unchecked",
        "waits for the checks of clicks 2013-01-01T12:00Z: no Spark",
    ),
    (
        InputUnchecked("daily", "primary", NOON, True, "clicks 2013-01-01T13:00Z", "", ()),
        "input_unchecked",
        "waits for the checks of the backfilled clicks 2013-01-01T13:00Z in daily 2013-01-01T12:00Z",
    ),
    (NoFreeSlot(3, False), "no_free_slot", "waits for a free slot (parallel: 3)"),
    (
        NoFreeSlot(3, True),
        "no_free_slot",
        "waits for a free slot (one at a time: several instances write one output instance)",
    ),
    (TurnPending(9), "turn_pending", "waits for its turn (at most 9 instances are launched at once)"),
    (NewerIsReady(NOON), "newer_is_ready", "LAST_ONLY: 2013-01-01T12:00Z is newer"),
    (
        InputSkipped(LACKING[0]),
        "input_skipped",
        "LAST_ONLY: flights: raw-flights 2013-01-01T12:00Z was skipped",
    ),
    (
        InputEvicted(LACKING[0], NOON),
        "input_evicted",
        "does not wait: flights: raw-flights 2013-01-01T12:00Z was evicted on 2013-01-01T12:00Z",
    ),
    (InputsTimedOut("hours(3)", MISSING), "inputs_timed_out", f"missing after hours(3): {NAMED}"),
]


@pytest.mark.parametrize(("reason", "kind", "text"), SAID, ids=[kind for _, kind, _ in SAID])
def test_a_reason_says_itself_to_people_and_programs(reason: Reason, kind: str, text: str) -> None:
    data = reason.as_data()
    assert (str(reason), reason.kind, data["kind"], data["text"]) == (text, kind, kind, text)
    assert json.loads(json.dumps(data)) == data


def test_what_is_missing_is_there_as_data() -> None:
    data = InputsMissing(LACKING[:1], 0, None).as_data()
    assert data == {
        "kind": "inputs_missing",
        "text": "waits for flights: raw-flights 2013-01-01T12:00Z",
        "inputs": [{"input": "flights", "feed": "raw-flights", "instance": "2013-01-01T12:00Z"}],
        "more": 0,
        "until": None,
    }


def test_every_reason_that_is_found_by_deciding_is_in_its_list() -> None:
    """One that is in none would never be given."""
    assert {*TAKEN, *NOT_READY} == set(Waiting.__subclasses__())
    assert set(GIVEN_UP) == set(GivenUp.__subclasses__())
    assert {type(reason) for reason, _, _ in SAID} >= {*TAKEN, *NOT_READY, *GIVEN_UP}
