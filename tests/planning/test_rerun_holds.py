from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from falcon_assets.model.instant import parse_instant
from falcon_assets.model.process import Process
from falcon_assets.planning.rerun_holds import FeedInstance, Rerun, RerunHolds, rerun_holds
from tests.builders import make_feed, make_process

START = parse_instant("2013-01-01T00:00Z")
FEEDS = {name: make_feed(name=name) for name in ("raw", "hourly", "totals", "report")}


def hour(number: int) -> datetime:
    return START + timedelta(hours=number)


def step(name: str, read: str, start: str, end: str, written: str) -> Process:
    return make_process(
        name=name,
        inputs=[{"name": "x", "feed": read, "start": start, "end": end}],
        outputs=[{"name": "y", "feed": written, "instance": "now(0,0)"}],
    )


PROCESSES = {
    one.name: one
    for one in (
        step("hours", "raw", "now(0,0)", "now(0,0)", "hourly"),
        step("sums", "hourly", "now(-1,0)", "now(0,0)", "totals"),
        step("latest", "totals", "latest(-1)", "latest(0)", "report"),
    )
}


def nobody(_: Collection[FeedInstance]) -> list[Rerun]:
    return []


def reason(holds: RerunHolds, process: str, number: int, available: Collection[datetime] = ()) -> str:
    return holds.reason(PROCESSES[process], "primary", FEEDS, hour(number), {"totals": available})


def test_who_reads_what_a_rerun_replaces_waits() -> None:
    holds = rerun_holds([("hours", hour(3)), ("gone", hour(1))], PROCESSES, FEEDS, "primary", nobody)
    assert holds.by_feed == {"hourly": {hour(3): ("hours", hour(3))}}
    said = "waits for the late rerun of hours 2013-01-01T03:00Z"
    assert [reason(holds, "sums", number) for number in (2, 3, 4, 5)] == ["", said, said, ""]
    assert reason(holds, "hours", 3) == ""


def test_also_for_the_reruns_that_follow() -> None:
    asked: list[set[FeedInstance]] = []

    def late_readers(instances: Collection[FeedInstance]) -> list[Rerun]:
        asked.append(set(instances))
        return [("sums", hour(number)) for feed, instance in instances for number in (3, 4) if feed == "hourly"]

    holds = rerun_holds([("hours", hour(3))], PROCESSES, FEEDS, "primary", late_readers)
    assert asked == [{("hourly", hour(3))}, {("totals", hour(3)), ("totals", hour(4))}]
    available = {hour(number) for number in range(6)}
    assert reason(holds, "latest", 5, available) == "waits for the late rerun of sums 2013-01-01T04:00Z"
    assert reason(holds, "latest", 6, available | {hour(6)}) == ""
    assert reason(holds, "latest", 5) == ""


def test_reruns_that_follow_in_a_circle_end() -> None:
    holds = rerun_holds(
        [("sums", hour(3))], PROCESSES, FEEDS, "primary", lambda instances: [("sums", one) for _, one in instances]
    )
    assert holds.by_feed == {"totals": {hour(3): ("sums", hour(3))}}


def test_nothing_waits_where_nothing_runs_again() -> None:
    assert rerun_holds([], PROCESSES, FEEDS, "primary", nobody) == RerunHolds()
    assert reason(RerunHolds(), "sums", 3) == ""
