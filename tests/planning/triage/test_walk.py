"""The search for causes, against a naive one that knows everything and follows every path for itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.triage.known import Data, Landing, Obstacle, Stretch, Work
from falcon_assets.features.triage.reasons import RunUnderWay
from falcon_assets.features.triage.tree import Cause, causes_of
from falcon_assets.features.triage.walk import Search
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.instance_record import FeedState, InstanceRecord, InstanceState, KnownFeedInstance
from falcon_assets.planning.reasons import LaunchPending, Reason
from falcon_assets.planning.retries import KnownInstance
from falcon_assets.planning.workloads import Workload
from tests.builders import make_feed, make_process, workload_of
from tests.hours import HOUR, START, hour

LONG_AFTER = parse_instant("2013-12-31T00:00Z")
HOURS = 9
READS: dict[str, tuple[tuple[str, int, int], ...]] = {
    "clean": (("raw", 0, 0),),
    "total": (("clean", -2, 0), ("raw", -1, -1)),
    "state": (("clean", 0, 0), ("state", -3, -2), ("state", -1, -1)),
    "there": (("raw", 0, 0), ("back", -1, -1)),
    "back": (("there", -1, 0),),
}
"""Feed that the process of the same name makes -> what that reads: feed, and its first and last hour."""


def make_workload(name: str) -> Workload:
    inputs = [
        {"name": f"i{number}", "feed": feed, "start": f"now({first},0)", "end": f"now({last},0)"}
        for number, (feed, first, last) in enumerate(READS[name])
    ]
    outputs = [{"name": "out", "feed": name, "instance": "now(0,0)"}]
    feeds = [make_feed(name=one) for one in dict.fromkeys(["raw", *READS])]
    return workload_of(make_process(name=name, inputs=inputs, outputs=outputs), *feeds)


WORKLOADS = {name: make_workload(name) for name in READS}


class Entities:
    feeds: Mapping[str, Feed] = {name: make_feed(name=name) for name in ("raw", *READS)}

    def workload(self, name: str, cluster_name: str) -> Workload | None:
        return WORKLOADS.get(name)

    def producers(self, feed_name: str, cluster_name: str) -> Sequence[Workload]:
        return [WORKLOADS[feed_name]] if feed_name in WORKLOADS else []

    def replications_to(self, feed_name: str, cluster_name: str) -> Sequence[Workload]:
        return []


@dataclass
class World:
    """By feed, which is the name of its process too, and hour."""

    data: dict[tuple[str, int], FeedState] = field(default_factory=dict)
    records: dict[tuple[str, int], InstanceState] = field(default_factory=dict)

    def instances(self, keys: Collection[Work]) -> Mapping[Work, KnownInstance]:
        return {
            key: KnownInstance(
                InstanceRecord(
                    key.nominal,
                    self.records.get((key.workload, number_of(key.nominal)), InstanceState.WAITING),
                    "it went wrong",
                    failures=9,
                )
            )
            for key in keys
        }

    def feed_instances(self, keys: Collection[Data]) -> Mapping[Data, KnownFeedInstance]:
        known = {key: self.data.get((key.feed, number_of(key.instance))) for key in keys}
        return {key: KnownFeedInstance(state) for key, state in known.items() if state}

    def available(self, cluster: str, feed: str, first: datetime, last: datetime) -> Collection[datetime]:
        raise AssertionError("nothing here reads what is available")

    def newest(self, cluster: str, feed: str, until: datetime, number: int) -> Collection[datetime]:
        raise AssertionError("nothing here reads the latest")

    def stretch(
        self, work: Work, feed: str, nominals: tuple[datetime, datetime], instances: tuple[datetime, datetime]
    ) -> Stretch:
        def of(state: FeedState) -> set[datetime]:
            found = (hour(number) for (name, number), one in self.data.items() if name == feed and one is state)
            return {one for one in found if instances[0] <= one <= instances[1]}

        passed = (InstanceState.WAITING, InstanceState.TIMED_OUT)
        begun = {hour(n) for (name, n), state in self.records.items() if name == work.workload and state not in passed}
        stops = {one for one in begun if nominals[0] <= one <= nominals[1]}
        return Stretch(of(FeedState.AVAILABLE), of(FeedState.EVICTED), stops)

    def newer(self, workload: Workload) -> None:
        return None

    def is_scheduled(self, workload: Workload) -> bool | None:
        return True

    def run(self, work: Work, record: InstanceRecord) -> tuple[str, Reason, tuple[Obstacle, ...]]:
        return record.state.value, RunUnderWay("a", "works"), ()

    def closed(self, workload: Workload) -> Mapping[Data, Reason]:
        return {}

    def not_checked(self, cluster: str) -> tuple[Obstacle, ...]:
        return ()

    def not_started(self, work: Work) -> tuple[Reason, tuple[Obstacle, ...]]:
        return LaunchPending(), ()

    def withheld(self, keys: Collection[Data]) -> Mapping[Data, Reason]:
        return {}

    def landings(self, keys: Collection[Data]) -> Mapping[Data, Landing]:
        return {key: Landing("/there") for key in keys}

    def not_recorded(self, cluster: str, sensor: str = "collector") -> tuple[Obstacle, ...]:
        return ()


EventKind: TypeAlias = tuple[str, str, str, int, int]
"""Name, kind of the entity, kind of the reason, first and last hour."""


def number_of(moment: datetime) -> int:
    return (moment - START) // HOUR


# The naive search: whoever waits or timed out lacks what is missing of what it reads, and so on.


def lacks(world: World, name: str, number: int) -> list[tuple[str, int]]:
    if world.records.get((name, number), InstanceState.WAITING) not in (InstanceState.WAITING, InstanceState.TIMED_OUT):
        return []
    read = [(feed, number + k) for feed, first, last in READS[name] for k in range(first, last + 1)]
    return [one for one in dict.fromkeys(read) if one[1] >= 0 and world.data.get(one) is not FeedState.AVAILABLE]


CYCLES = {"state": {"state"}, "there": {"there", "back"}, "back": {"there", "back"}}


def expected(world: World, name: str, number: int) -> dict[tuple[str, str, str], set[int]]:
    """What is told: of cycles only where they begin."""
    found: dict[tuple[str, str, str], set[int]] = {}

    def tell(kind: str, one: str, reason: str, when: int) -> bool:
        hours = found.setdefault((one, kind, reason), set())
        known, _ = when in hours, hours.add(when)
        return not known

    def of_work(one: str, when: int) -> None:
        state = world.records.get((one, when), InstanceState.WAITING)
        lacking = lacks(world, one, when)
        reason = {
            InstanceState.WAITING: "inputs_missing" if lacking else "launch_pending",
            InstanceState.TIMED_OUT: "timed_out",
            InstanceState.FAILED: "failed",
            InstanceState.KILLED: "stopped",
            InstanceState.RUNNING: "run_under_way",
            InstanceState.SUCCEEDED: "done_without",
        }[state]
        if not tell("process", one, reason, when):
            return
        within = CYCLES.get(one, set())
        for feed, its in lacking:
            if feed not in within or world.data.get((feed, its)) is FeedState.EVICTED:
                of_data(feed, its)
        for begin in beginnings(one, when):
            of_work(*begin)
        if one == "state":
            for gone in evicted_behind(one, when):
                of_data(*gone)

    def of_data(feed: str, when: int) -> None:
        if world.data.get((feed, when)) is FeedState.EVICTED:
            tell("feed", feed, "data_evicted", when)
        elif feed == "raw":
            tell("feed", feed, "not_arrived", when)
        elif tell("feed", feed, "made_by", when):
            of_work(feed, when)

    def behind(one: str, when: int) -> Iterator[tuple[str, int]]:
        """All of its cycle that it waits for, directly or not."""
        seen: set[tuple[str, int]] = set()
        following = [(one, when)]
        while following:
            for key in lacks(world, *following.pop()):
                is_gone = world.data.get(key) is FeedState.EVICTED
                if key[0] in CYCLES.get(one, ()) and key not in seen and not is_gone:
                    seen.add(key)
                    following.append(key)
                    yield key

    def waits_within(one: str, when: int) -> bool:
        lacking = [key for key in lacks(world, one, when) if key[0] in CYCLES.get(one, ())]
        if one != "state":
            lacking = [key for key in lacking if world.data.get(key) is not FeedState.EVICTED]
        return bool(lacking)

    def beginnings(one: str, when: int) -> list[tuple[str, int]]:
        return [key for key in behind(one, when) if not waits_within(*key)]

    def evicted_behind(one: str, when: int) -> set[tuple[str, int]]:
        every = [(one, when), *behind(one, when)]
        return {
            key
            for those in every
            for key in lacks(world, *those)
            if world.data.get(key) is FeedState.EVICTED and key[0] in CYCLES.get(one, ())
        }

    of_work(name, number)
    return found


def told(cause: Cause) -> Iterator[Cause]:
    yield cause
    for one in cause.causes:
        yield from told(one)


hours = st.integers(0, HOURS)
worlds = st.builds(
    World,
    st.dictionaries(
        st.tuples(st.sampled_from(list(Entities.feeds)), hours),
        st.sampled_from([FeedState.AVAILABLE, FeedState.EVICTED]),
        max_size=40,
    ),
    st.dictionaries(
        st.tuples(st.sampled_from(list(READS)), hours),
        st.sampled_from(
            [
                InstanceState.FAILED,
                InstanceState.TIMED_OUT,
                InstanceState.KILLED,
                InstanceState.RUNNING,
                InstanceState.SUCCEEDED,
                InstanceState.WAITING,
            ]
        ),
        max_size=15,
    ),
)


@given(worlds, st.sampled_from(list(READS)))
def test_it_finds_what_a_naive_search_finds(world: World, name: str) -> None:
    search = Search(Entities(), world, LONG_AFTER)
    work = Work(name, "primary", hour(HOURS))
    search.run([work], [])
    found: dict[tuple[str, str, str], list[Cause]] = {}
    tree = causes_of(search, work)
    if tree.state == InstanceState.SUCCEEDED.value:
        assert (tree.reason, tree.causes) == (None, ())
        return
    for one in told(tree):
        assert one.reason is not None
        found.setdefault((one.name, one.kind, one.reason.kind), []).append(one)
    wanted = expected(world, name, HOURS)
    assert {key: (min(c.first for c in of), max(c.last for c in of)) for key, of in found.items()} == {
        key: (hour(min(when)), hour(max(when))) for key, when in wanted.items()
    }
    counts = {key: sum(c.count for c in of if not c.is_told) for key, of in found.items()}
    assert all(counts[key] >= len(when) for key, when in wanted.items())
