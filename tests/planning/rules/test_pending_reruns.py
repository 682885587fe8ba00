from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from falcon_assets.instances.rules.pending_reruns import FeedInstance, PendingReruns, Rerun, pending_reruns
from falcon_assets.planning.workloads import ProcessWorkload, Workload, replications_to
from tests.builders import VALIDITY, make_feed, make_process
from tests.hours import hour

FEEDS = {name: make_feed(name=name) for name in ("raw", "hourly", "totals", "report")}


def step(name: str, read: str, start: str, end: str, written: str) -> ProcessWorkload:
    process = make_process(
        name=name,
        inputs=[{"name": "x", "feed": read, "start": start, "end": end}],
        outputs=[{"name": "y", "feed": written, "instance": "now(0,0)"}],
    )
    return ProcessWorkload(process, "primary", FEEDS)


WORKLOADS = {
    one.name: one
    for one in (
        step("hours", "raw", "now(0,0)", "now(0,0)", "hourly"),
        step("sums", "hourly", "now(-1,0)", "now(0,0)", "totals"),
        step("latest", "totals", "latest(-1)", "latest(0)", "report"),
    )
}


def workload_on(name: str, cluster: str) -> Workload | None:
    return WORKLOADS.get(name) if cluster == "primary" else None


def nobody(_: Collection[FeedInstance]) -> list[Rerun]:
    return []


def on_primary(*reruns: tuple[str, int]) -> list[Rerun]:
    return [(name, "primary", hour(number)) for name, number in reruns]


def awaited(
    holds: PendingReruns, name: str, number: int, available: Collection[datetime] = ()
) -> tuple[str, datetime] | None:
    return holds.awaited(WORKLOADS[name], hour(number), {"totals": available})


def test_who_reads_what_a_rerun_replaces_waits() -> None:
    found = pending_reruns(on_primary(("hours", 3), ("gone", 1)), workload_on, nobody)
    holds = PendingReruns({"hourly": {hour(3): ("hours", hour(3))}})
    assert found == {"primary": holds}
    third = ("hours", hour(3))
    assert [awaited(holds, "sums", number) for number in (2, 3, 4, 5)] == [None, third, third, None]
    assert awaited(holds, "hours", 3) is None


def test_also_for_the_reruns_that_follow() -> None:
    asked: list[set[FeedInstance]] = []

    def late_readers(instances: Collection[FeedInstance]) -> list[Rerun]:
        asked.append(set(instances))
        return on_primary(*(("sums", number) for _, feed, _ in instances for number in (3, 4) if feed == "hourly"))

    holds = pending_reruns(on_primary(("hours", 3)), workload_on, late_readers)["primary"]
    assert asked == [{("primary", "hourly", hour(3))}, {("primary", "totals", hour(3)), ("primary", "totals", hour(4))}]
    available = {hour(number) for number in range(6)}
    assert awaited(holds, "latest", 5, available) == ("sums", hour(4))
    assert awaited(holds, "latest", 6, available | {hour(6)}) is None
    assert awaited(holds, "latest", 5) is None


def test_also_for_those_that_follow_on_targets() -> None:
    """What is copied from one cluster to the next, and what is made of it there."""
    clusters = [
        {"name": name, "validity": VALIDITY, "type": type_}
        for name, type_ in (("primary", "source"), ("backup", "target"))
    ]
    hourly = make_feed(name="hourly", clusters=clusters)
    (copying,) = replications_to(hourly, hourly.clusters[1])
    there = [{"name": "backup", "validity": VALIDITY}]
    process = WORKLOADS["sums"].entity.model_copy(update={"clusters": make_process(clusters=there).clusters})
    feeds = {"hourly": hourly, "totals": make_feed(name="totals", clusters=there)}
    sums = ProcessWorkload(process, "backup", feeds)
    workloads: dict[tuple[str, str], Workload] = {
        ("hours", "primary"): WORKLOADS["hours"],
        (copying.name, "backup"): copying,
        ("sums", "backup"): sums,
    }

    def late_readers(instances: Collection[FeedInstance]) -> Iterator[Rerun]:
        for cluster, feed, instance in instances:
            if (cluster, feed) == ("primary", "hourly"):
                yield copying.name, "backup", instance
            if (cluster, feed) == ("backup", "hourly"):
                yield "sums", "backup", instance

    found = pending_reruns(on_primary(("hours", 3)), lambda *key: workloads.get(key), late_readers)
    assert found == {
        "primary": PendingReruns({"hourly": {hour(3): ("hours", hour(3))}}),
        "backup": PendingReruns({"hourly": {hour(3): (copying.name, hour(3))}, "totals": {hour(3): ("sums", hour(3))}}),
    }
    assert found["backup"].awaited(sums, hour(4), {}) == ("hourly from primary", hour(3))


def test_reruns_that_follow_in_a_circle_end() -> None:
    def sums(instances: Collection[FeedInstance]) -> list[Rerun]:
        return [("sums", cluster, instance) for cluster, _, instance in instances]

    holds = pending_reruns(on_primary(("sums", 3)), workload_on, sums)
    assert holds == {"primary": PendingReruns({"totals": {hour(3): ("sums", hour(3))}})}


def test_nothing_waits_where_nothing_runs_again() -> None:
    assert pending_reruns([], workload_on, nobody) == {}
    assert awaited(PendingReruns(), "sums", 3) is None
