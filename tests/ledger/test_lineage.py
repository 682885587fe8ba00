"""What versions came from and became, against a search that goes edge by edge; however history was folded."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from falcon_assets.features.lineage.store import graph_of, reached, versions_of_instance
from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.folding.fold import fold, rebuild
from falcon_assets.history.tables import DATA_VERSIONS
from falcon_assets.planning.version_columns import OutputColumns
from tests.hours import hour
from tests.ledger.histories import content, empty, history_of
from tests.properties import examples

Key: TypeAlias = tuple[str, str, datetime, str]
Place: TypeAlias = tuple[str, str, datetime]

PLACES = st.tuples(st.sampled_from(["primary", "backup"]), st.sampled_from("abc"), st.integers(0, 1).map(hour))
VERSIONS = st.sampled_from(["v1", "v2", "v3"])
KEYS = st.tuples(PLACES, VERSIONS).map(lambda both: (*both[0], both[1]))


def landed(key: Key) -> Fact:
    return FeedInstanceAvailable(*key, hour(0))


def made(key: Key, read: list[Key], columns: OutputColumns | None = None) -> Fact:
    inputs = {"x": tuple(Consumption(one[1], one[2], one[3], one[0]) for one in read)}
    return FeedInstanceAvailable(*key, hour(0), process="p", nominal=hour(0), inputs=inputs, columns=columns)


def copied(key: Key, version: str) -> Fact:
    cluster, feed, instance, own = key
    source = {"primary" if cluster == "backup" else "backup": version, cluster: None}
    told = {"process": f"{feed} from there", "nominal": instance, "source_versions": source}
    return FeedInstanceAvailable(cluster, feed, instance, own, hour(0), **told)


STEPS = st.lists(
    st.one_of(
        st.builds(landed, KEYS),
        st.builds(made, KEYS, st.lists(KEYS, max_size=4)),
        st.builds(copied, KEYS, VERSIONS),
        st.builds(lambda place: FeedInstanceEvicted(*place, "delete", hour(0)), PLACES),
    ),
    max_size=25,
)


@dataclass
class Oracle:
    """The same, kept in the simplest way."""

    inputs: dict[Key, set[Key]] = field(default_factory=lambda: defaultdict(set))
    statuses: dict[Key, str] = field(default_factory=dict)
    present: dict[Place, str] = field(default_factory=dict)

    def see(self, fact: Fact) -> None:
        assert isinstance(fact, FeedInstanceAvailable | FeedInstanceEvicted)
        place = (fact.cluster, fact.feed, fact.instance)
        before = self.present.pop(place, None)
        if isinstance(fact, FeedInstanceEvicted):
            if before:
                self.statuses[(*place, before)] = "EVICTED"
            return
        if before:
            self.statuses[(*place, before)] = "REPLACED"
        self.present[place] = fact.version
        own = (*place, fact.version)
        self.statuses[own] = "AVAILABLE"
        read = [(one.cluster or "", one.feed, one.instance, one.version) for one in (fact.inputs or {}).get("x", ())]
        read += [(at, fact.feed, fact.instance, version) for at, version in (fact.source_versions or {}).items()]
        for one in read:
            if one[3] and one != own:
                self.statuses.setdefault(one, "READ")
                self.inputs[own].add(one)

    def reached(self, start: Key, *, up: bool, depth: int) -> set[Key]:
        outputs: dict[Key, set[Key]] = defaultdict(set)
        for output, read in self.inputs.items():
            for one in read:
                outputs[one].add(output)
        following, found = self.inputs if up else outputs, {start}
        for _ in range(depth):
            found |= {there for one in found for there in following.get(one, ())}
        return found


@examples(40)
@given(STEPS, st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(1, 3))
def test_what_came_from_what(ledger: Engine, facts: list[Fact], sizes: list[int], depth: int) -> None:
    empty(ledger)
    history = [Logged(number, fact, f"run-{number}") for number, fact in enumerate(facts, 1)]
    fold(ledger, history_of(history, sizes))
    folded, oracle = content(ledger), Oracle()
    for fact in facts:
        oracle.see(fact)
    with ledger.connect() as connection:
        of_key = [*DATA_VERSIONS.c.keys()].index("id")
        numbers = {(row[0], row[1], row[2], row[3]): row[of_key] for row in content(ledger)["data_versions"]}
        names = {number: key for key, number in numbers.items()}
        assert numbers.keys() == oracle.statuses.keys()
        everything = graph_of(connection, names)
        statuses = {names[number]: one.status.value for number, one in everything.versions.items()}
        assert statuses == oracle.statuses
        edges = {(names[one.output], names[one.input]) for one in everything.edges}
        assert edges == {(output, one) for output, read in oracle.inputs.items() for one in read}
        for key, number in numbers.items():
            for up in (True, False):
                near, all_of_it = (reached(connection, [number], up=up, depth=limit) for limit in (depth, None))
                assert {names[one] for one in near} == oracle.reached(key, up=up, depth=depth)
                assert {names[one] for one in all_of_it} == oracle.reached(key, up=up, depth=len(numbers))
    rebuild(ledger, history_of(history))
    assert content(ledger) == folded


def test_the_present_version_is_the_one_that_came_last(engine: Engine) -> None:
    came = ["v1", "v2", "v1"]
    facts = [Logged(number, landed(("primary", "a", hour(0), one))) for number, one in enumerate(came, 1)]
    fold(engine, history_of(facts))
    with engine.connect() as connection:
        assert [one.version for one in versions_of_instance(connection, "a", hour(0))] == ["v2", "v1"]
        assert versions_of_instance(connection, "a", hour(1)) == []
