"""When receivers are told and in what words, against a naive reading of the same rules."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.notification.delivery import NotificationSending
from falcon_assets.features.notification.rules import message_of, receivers
from falcon_assets.history.events.instance_event import InstanceEvent, Notice
from falcon_assets.instances.outbox.rules import URGENT, WaitingReceiver, is_due, retry_after
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.notification import Notification
from falcon_assets.planning.instance_record import LATE, InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.retries import is_final
from tests.builders import make_process

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PAUSE = NotificationSending.pause
TELLS_A = Notification.model_validate({"on": ["FAILED"], "to": [{"url": {"env": "A"}}, {"url": {"env": "A"}}]})
TELLS_B = Notification.model_validate({"to": [{"url": {"env": "B"}}]})


def notice(event: EventKind = EventKind.FAILED, entity: str = "hourly", hour: int = 0, reason: str = "") -> Notice:
    instance = START + timedelta(hours=hour)
    return Notice(
        "A", "process", entity, InstanceEvent(event, "process", entity, "primary", instance, START, "1", reason)
    )


@st.composite
def timelines(draw: st.DrawFn) -> tuple[list[tuple[int, EventKind]], set[int]]:
    """Events by the minute in which they happen, and the minutes in which the receiver takes nothing."""
    events = draw(st.lists(st.tuples(st.integers(0, 90), st.sampled_from(list(EventKind))), max_size=12))
    down = draw(st.sets(st.integers(0, 100), max_size=40))
    return sorted(events), down


@given(timelines())
def test_a_simulated_receiver_is_told_everything_once_and_by_the_rules(
    timeline: tuple[list[tuple[int, EventKind]], set[int]],
) -> None:
    events, down = timeline
    pending: list[tuple[int, EventKind]] = []
    told: list[tuple[int, list[tuple[int, EventKind]]]] = []
    tries: list[tuple[int, bool]] = []
    failures, retry_at, sent_at = 0, None, None
    for minute in range(200):
        now = START + minute * MINUTE
        pending += [one for one in events if one[0] == minute]
        if not pending:
            continue
        waiting = WaitingReceiver(
            "A",
            START + pending[0][0] * MINUTE,
            any(event in URGENT for _, event in pending),
            sent_at=sent_at,
            retry_at=retry_at,
        )
        assert is_due(waiting, now, PAUSE) == naively_due(minute, pending, told, tries)
        if is_due(waiting, now, PAUSE):
            tries.append((minute, minute not in down))
            if minute in down:
                failures += 1
                retry_at = now + retry_after(failures)
            else:
                told.append((minute, pending))
                pending, failures, retry_at, sent_at = [], 0, None, now
    assert [one for _, part in told for one in part] == events
    assert all(later - earlier >= 5 for (earlier, _), (later, _) in itertools.pairwise(told))


def naively_due(
    minute: int,
    pending: list[tuple[int, EventKind]],
    told: list[tuple[int, list[tuple[int, EventKind]]]],
    tries: list[tuple[int, bool]],
) -> bool:
    """From all that happened before: who failed waits 1, 2, 4, 8, 15, 15 ... minutes; else five are between two."""
    failed = 0
    for _, taken in reversed(tries):
        if taken:
            break
        failed += 1
    if failed:
        return minute - tries[-1][0] >= [1, 2, 4, 8, 15][min(failed, 5) - 1]
    if told and minute - told[-1][0] < 5:
        return False
    return (
        any(
            event.value in ["FAILED", "TIMED_OUT", "SLA", "LATE", "KILLED", "RESTORED"]
            or event.value.startswith("EXECUTOR_")
            for _, event in pending
        )
        or minute - pending[0][0] >= 5
    )


def test_a_message_that_was_interrupted_is_sent_again_at_once() -> None:
    waiting = WaitingReceiver("A", START, is_urgent=False, is_interrupted=True, sent_at=START)
    assert is_due(waiting, START + MINUTE, PAUSE)


@pytest.mark.parametrize("field", ["sent_at", "retry_at"])
def test_a_clock_that_was_set_back_silences_nobody(field: str) -> None:
    waiting = WaitingReceiver("A", START, is_urgent=True, **{field: START + timedelta(days=1)})
    assert is_due(waiting, START, PAUSE)


def test_a_receiver_is_tried_again_within_a_quarter_of_an_hour() -> None:
    waits = [retry_after(failures) / MINUTE for failures in (1, 2, 3, 4, 5, 1_000_000)]
    assert waits == [1, 2, 4, 8, 15, 15]
    assert PAUSE == 5 * MINUTE


@pytest.mark.parametrize(
    ("event", "declared", "default", "expected"),
    [
        (EventKind.FAILED, TELLS_A, TELLS_B, ("A",)),
        (EventKind.SLA, TELLS_A, TELLS_B, ()),
        (EventKind.SLA, None, TELLS_B, ("B",)),
        (EventKind.SUCCEEDED, None, TELLS_B, ()),
        (EventKind.FAILED, None, None, ()),
    ],
)
def test_the_entity_says_it_or_else_the_location(
    event: EventKind, declared: Notification | None, default: Notification | None, expected: tuple[str, ...]
) -> None:
    assert receivers(event, declared, default) == expected


NOTICES = st.lists(
    st.builds(
        notice,
        st.sampled_from(list(EventKind)),
        st.sampled_from(["hourly", "daily", "raw"]),
        st.integers(0, 5),
        st.sampled_from(["", "no space", "no\nspace", "\x1b[31mred", "x" * 500]),
    ),
    min_size=2,
    max_size=60,
)


@given(NOTICES)
def test_a_message_counts_everything_and_is_never_long(notices: list[Notice]) -> None:
    message = message_of("abc", notices)
    events = Counter(one.happening.event.value for one in notices)
    assert {event: int(number) for number, event in re.findall(r"(\d+) ([A-Z_]+)", message.title)} == dict(events)
    lines = message.body.splitlines()
    assert sum(int(line.split(" x ")[0]) for line in lines if re.match(r"\d+ x ", line)) == len(notices)
    assert len(lines) <= 25
    assert max(map(len, lines)) < 300
    assert message.body.replace("\n", "").isprintable()
    assert lines[-1] == "all of it: falcon notification list --filter message=abc"


def test_a_failure_is_final_when_no_retry_follows() -> None:
    retry = make_process(retry={"policy": "periodic", "attempts": 2}).retry

    def final(failures: int, request: RerunRequest | None = None) -> bool:
        record = InstanceRecord(START, InstanceState.FAILED, attempt=failures, failures=failures, ended=START)
        return is_final(record, retry, request)

    assert [final(failures) for failures in (1, 2, 3, 4)] == [False, False, True, True]
    again = RerunRequest(LATE, 3, 3, START)
    assert [final(failures, again) for failures in (3, 4, 5, 6)] == [True, False, False, True]
    timed_out = InstanceRecord(START, InstanceState.TIMED_OUT, failures=1, ended=START)
    assert is_final(timed_out, retry, None)
    assert not is_final(timed_out, retry.model_copy(update={"on_timeout": True}), None)
