"""What a run says of what waits: nothing of data that nobody could look for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from falcon_assets.instances.rules.readiness import MissingInput
from falcon_assets.instances.rules.situation import Decision
from falcon_assets.instances.rules.waiting import InputsMissing, NoFreeSlot
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.workloads import Workload
from falcon_assets.surface.foreground.known_waits import WaitingWorkload, known_waits
from tests.builders import make_feed, make_process, workload_of

AT = datetime(2013, 1, 1, tzinfo=UTC)


def reader(name: str, reads: str, writes: str) -> Workload:
    process: dict[str, Any] = {
        "name": name,
        "inputs": [{"name": "rows", "feed": reads, "start": "now(0,0)", "end": "now(0,0)"}],
        "outputs": [{"name": "out", "feed": writes, "instance": "now(0,0)"}],
    }
    return workload_of(make_process(**process), make_feed(name=reads), make_feed(name=writes))


def lacks(*feeds: str) -> InputsMissing:
    return InputsMissing(tuple(MissingInput("rows", feed, AT) for feed in feeds), 0, None)


def waits(reason: Reason, further: int = 0) -> Decision:
    return Decision((), (), (), {AT: reason}, 0, None, further=further)


FIRST, SECOND, OTHER = (
    reader("first", "raw", "clean"),
    reader("second", "clean", "sums"),
    reader("other", "news", "out"),
)
KEYS = {one.name: (one.name, "primary") for one in (FIRST, SECOND, OTHER)}


def names(found: tuple[WaitingWorkload, ...]) -> list[str]:
    return [one.process for one in found]


def test_what_waits_for_data_that_was_looked_for_is_told() -> None:
    decisions = {KEYS["first"]: waits(lacks("raw"), 7), KEYS["second"]: waits(lacks("clean"))}
    found = known_waits([FIRST, SECOND], decisions, set())
    assert found == (
        WaitingWorkload("first", "primary", ((AT, lacks("raw")),), 7),
        WaitingWorkload("second", "primary", ((AT, lacks("clean")),)),
    )


def test_a_feed_that_could_not_be_read_silences_all_that_comes_after_it() -> None:
    decisions = {
        KEYS["second"]: waits(lacks("clean")),
        KEYS["first"]: waits(lacks("raw"), 7),
        KEYS["other"]: waits(lacks("news")),
    }
    assert names(known_waits([SECOND, FIRST, OTHER], decisions, {("primary", "raw")})) == ["other"]
    assert names(known_waits([SECOND, FIRST, OTHER], decisions, {("elsewhere", "raw")})) == ["second", "first", "other"]


def test_so_does_a_workload_that_was_left_out_itself() -> None:
    decisions = {KEYS["second"]: waits(lacks("clean")), KEYS["other"]: waits(lacks("news"))}
    assert names(known_waits([FIRST, SECOND, OTHER], decisions, set())) == ["other"]


def test_other_reasons_are_told_whatever_could_be_read() -> None:
    slot = NoFreeSlot(1, one_at_a_time=False)
    found = known_waits([FIRST], {KEYS["first"]: waits(slot)}, {("primary", "raw")})
    assert found == (WaitingWorkload("first", "primary", ((AT, slot),)),)
