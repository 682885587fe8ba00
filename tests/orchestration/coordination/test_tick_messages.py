"""What the ticks of coordinators say."""

from __future__ import annotations

from collections.abc import Mapping

from falcon_assets.instances.coordination.coordinator import Outlook
from falcon_assets.instances.coordination.ticks import WaitingNews, done, nothing_started
from falcon_assets.instances.rules.readiness import MissingInput
from falcon_assets.instances.rules.situation import Decision
from falcon_assets.instances.rules.standing import Waits
from falcon_assets.instances.rules.waiting import InputsMissing, InputsTimedOut, InRun, ProcessSuspended
from falcon_assets.planning.reasons import Reason
from tests.hours import hour


def lacks(number: int) -> InputsMissing:
    return InputsMissing((MissingInput("raw", "raw", hour(number)),), 0, None)


def decision(waiting: Mapping[int, Reason], timed_out: Mapping[int, Reason] | None = None) -> Decision:
    return Decision(
        launches=(),
        timed_out=tuple((hour(number), reason) for number, reason in (timed_out or {}).items()),
        skipped=(),
        waiting={hour(number): reason for number, reason in waiting.items()},
        first_open=0,
        wake_at=None,
    )


def outlook(*decisions: Decision) -> Outlook:
    return Outlook((), {(f"p{number}", "primary"): one for number, one in enumerate(decisions)}, {})


def standing(*decisions: Decision) -> dict[tuple[str, str], Waits]:
    return {key: Waits.of(one) for key, one in outlook(*decisions).decisions.items()}


def test_a_tick_that_starts_nothing_says_what_waits_for_what() -> None:
    waits = decision({0: InRun("abc"), 1: lacks(1), 2: lacks(2)})
    suspended = decision({3: ProcessSuspended()})
    found = standing(waits, decision({}), suspended)
    assert nothing_started(found, {("broken", "primary"): "no such feed"}).splitlines() == [
        "nothing is ready; 1 instance is in a run, 3 wait",
        "broken on primary: no such feed",
        "p0 on primary 2013-01-01T01:00Z waits for raw: raw 2013-01-01T01:00Z, and 1 more waits",
        "p2 on primary 2013-01-01T03:00Z does not run by itself: it is not scheduled, or suspended",
    ]


def test_many_processes_do_not_flood_a_tick() -> None:
    said = nothing_started(standing(*[decision({0: lacks(0)})] * 9), {}).splitlines()
    assert len(said) == 7
    assert said[-1] == "... and instances of 4 more processes: see the log of earlier ticks"


def test_what_gives_up_is_in_the_log_with_its_reason() -> None:
    many = decision({}, dict.fromkeys(range(25), InputsTimedOut("hours(3)", lacks(0))))
    said = list(done(outlook(many)))
    assert said[0] == "p0 on primary 2013-01-01T00:00Z timed out: missing after hours(3): raw: raw 2013-01-01T00:00Z"
    assert said[20:] == ["... and 5 more instances of p0 on primary"]


def test_what_waits_is_logged_when_it_is_new() -> None:
    waiting = WaitingNews()
    first = {("p", "primary"): decision(dict.fromkeys(range(22), lacks(0)))}
    said = waiting.news(first)
    assert said[0] == "p on primary 2013-01-01T00:00Z waits for raw: raw 2013-01-01T00:00Z"
    assert said[20:] == ["... and 2 more instances of p on primary wait"]
    assert waiting.news(first) == []
    assert waiting.news({("p", "primary"): decision({0: lacks(0), 1: lacks(1)})}) == [
        "p on primary 2013-01-01T01:00Z waits for raw: raw 2013-01-01T01:00Z"
    ]
