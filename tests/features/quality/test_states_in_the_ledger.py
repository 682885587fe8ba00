"""States by the ledger over random histories, against a search by hand; a rebuild says the same as every fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from falcon_assets.features.quality.events import InstanceChecked, InvalidAccepted
from falcon_assets.features.quality.rules import Propagation, QualityState, VersionFacts
from falcon_assets.features.quality.states import known_states
from falcon_assets.features.quality.verdict import InstanceVerdict
from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.folding.fold import fold, rebuild
from falcon_assets.history.tables import METADATA, PROJECTION
from falcon_assets.operations.installation import Installation
from tests.builders import cluster_yaml, feed_yaml
from tests.features.quality.shop import at, feed
from tests.features.quality.test_propagation import expected
from tests.ledger.histories import content, empty, history_of
from tests.operations.opening import OpenAt

CHECK = "\n  - {rule: row_count, min: 2}\n"
ROLLUP = """
---
kind: feed
name: both
frequency: hours(1)
rollup: {of: [left, right]}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
"""
ENTITIES = cluster_yaml() + feed("left", CHECK) + feed("right", CHECK) + ROLLUP + feed_yaml("sums") + feed_yaml("tops")
Place: TypeAlias = tuple[str, datetime]
Version: TypeAlias = tuple[str, datetime, str]
VALID, INVALID, UNCHECKED = InstanceVerdict.VALID, InstanceVerdict.INVALID, InstanceVerdict.UNCHECKED


@dataclass
class Story:
    """Facts, and what a person would note of them.

    Attributes:
        made_from: The sources of each version when it was made last.
        verdicts: By version, in the order of the last check of each.
    """

    facts: list[Logged] = field(default_factory=list)
    present: dict[Place, str] = field(default_factory=dict)
    made_from: dict[Version, set[Version]] = field(default_factory=dict)
    verdicts: dict[Version, InstanceVerdict] = field(default_factory=dict)
    accepted: set[Version] = field(default_factory=set)

    def say(self, fact: Fact, run_id: str | None = None) -> None:
        self.facts.append(Logged(len(self.facts) + 1, fact, run_id))

    @property
    def now(self) -> datetime:
        return at(4) + timedelta(minutes=len(self.facts))

    def available(self, name: str, hour: datetime, version: str, process: str | None, read: Sequence[Version]) -> None:
        inputs = {"rows": tuple(Consumption(*one) for one in read)} if process else None
        made = FeedInstanceAvailable(
            "primary", name, hour, version, self.now, process=process, nominal=hour if process else None, inputs=inputs
        )
        self.say(made, None if process is None or "rolled up" in process else f"run-{len(self.facts)}")
        self.present[name, hour] = version
        if process:
            self.made_from[name, hour, version] = {*read} - {(name, hour, version)}

    def judge(self, one: Version, verdict: InstanceVerdict) -> None:
        self.say(InstanceChecked("primary", one[0], one[1], verdict, one[2], self.now, "full"))
        self.verdicts.pop(one, None)
        self.verdicts[one] = verdict

    def accept(self, one: Version) -> None:
        self.say(InvalidAccepted("primary", one[0], one[1], "ann", one[2], self.now, "why"))
        self.verdicts.setdefault(one, UNCHECKED)
        self.accepted.add(one)

    def evict(self, place: Place) -> None:
        self.say(FeedInstanceEvicted("primary", *place, "delete", self.now))
        del self.present[place]

    def states(self) -> dict[Place, QualityState]:
        """Of present versions, what is not valid."""
        versions = {*self.verdicts, *self.made_from, *(one for of in self.made_from.values() for one in of)}
        versions |= {(*place, version) for place, version in self.present.items()}
        numbers = {one: number for number, one in enumerate(sorted(versions))}
        facts = {numbers[one]: self._facts(one) for one in versions}
        made_from = {numbers[one]: [numbers[source] for source in of] for one, of in self.made_from.items()}
        rollups = {numbers[one] for one in self.made_from if one[0] == "both"}
        found = expected(Propagation(facts, made_from, rollups))
        return {
            place: found[number]
            for place, version in self.present.items()
            if (number := numbers[*place, version]) in found and found[number] is not QualityState.VALID
        }

    def _facts(self, one: Version) -> VersionFacts:
        is_present = self.present.get(one[:2]) == one[2]
        if one in self.accepted:
            return VersionFacts(QualityState.VALID, is_accepted=True, is_present=is_present)
        if one in self.verdicts:
            return VersionFacts(QualityState(self.verdicts[one].value), is_present=is_present)
        if not (is_present and one[0] in ("left", "right")):
            return VersionFacts(None, is_present=is_present)
        of_others = [other for other in self.verdicts if other[:2] == one[:2]]
        was_invalid = bool(of_others) and of_others[-1] not in self.accepted and self.verdicts[of_others[-1]] is INVALID
        return VersionFacts(QualityState.BACKFILLED if was_invalid else QualityState.UNCHECKED)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    story = Story()
    for _ in range(draw(st.integers(1, 25))):
        hour, what = at(draw(st.integers(0, 1))), draw(st.integers(0, 9))
        there = sorted((*place, version) for place, version in story.present.items())
        if what <= 2 or not there:
            story.available(draw(st.sampled_from(["left", "right"])), hour, draw(st.sampled_from("abc")), None, ())
        elif what <= 4:
            name = draw(st.sampled_from(["sums", "tops"]))
            read = draw(st.lists(st.sampled_from(there), min_size=1, max_size=3, unique=True))
            story.available(name, hour, draw(st.sampled_from("xyz")), name, read)
        elif what == 5:
            parts = [one for one in there if one[0] in ("left", "right") and one[1] == hour]
            if parts:
                story.available("both", hour, " ".join(f"{one[0]}{one[2]}" for one in parts), "both rolled up", parts)
        elif what <= 7:
            story.judge(draw(st.sampled_from(there)), draw(st.sampled_from([VALID, INVALID, INVALID])))
        elif what == 8:
            story.accept(draw(st.sampled_from(there)))
        else:
            story.evict(draw(st.sampled_from(there))[:2])
    return story


@pytest.fixture
def installation(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    write_entities({"all.yaml": ENTITIES})
    with open_at("2013-01-01T12:00Z") as opened:
        yield opened


def made_again_from_valid_data() -> Story:
    """The output is the same as that of invalid data."""
    story, one = Story(), at(0)
    for version, verdict in (("a", INVALID), ("b", VALID)):
        story.available("left", one, version, None, ())
        story.judge(("left", one, version), verdict)
        story.available("sums", one, "x", "sums", [("left", one, version)])
    return story


def invalid_as_a_whole() -> Story:
    """Each part is valid, and what was made from one of them is marked, too."""
    story, one = Story(), at(0)
    parts = [("left", one, "a"), ("right", one, "b")]
    for part in parts:
        story.available(*part, None, ())
        story.judge(part, VALID)
    story.available("sums", one, "x", "sums", parts[:1])
    story.available("both", one, "ab", "both rolled up", parts)
    story.judge(("both", one, "ab"), INVALID)
    return story


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(stories(), st.lists(st.integers(1, 7), min_size=1, max_size=4))
@example(made_again_from_valid_data(), [3])
@example(invalid_as_a_whole(), [2])
def test_every_fold_says_what_is_found_by_hand(installation: Installation, story: Story, sizes: list[int]) -> None:
    engine, store, now = installation.ledger.engine, installation.entities, installation.settings.now()
    places = [("primary", name) for name in store.feeds]
    empty(engine, *(one for one in METADATA.tables.values() if one not in PROJECTION))

    def found() -> dict[Place, QualityState]:
        with engine.begin() as connection:
            states = known_states(connection, store, places, now, lambda _: True)
        return {(name, hour): one.state for (_, name, hour), one in states.items()}

    fold(engine, history_of(story.facts, sizes))
    assert found() == story.states()
    before = content(engine)
    rebuild(engine, history_of(story.facts))
    assert (content(engine), found()) == (before, story.states())
