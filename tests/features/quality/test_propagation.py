"""States on random graphs of roll-ups and consumers, against a search by hand until nothing changes any more."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.quality.rules import FoundState, Propagation, QualityState, VersionFacts, Way

STATES = (None, None, *QualityState)


@st.composite
def propagations(draw: st.DrawFn) -> Propagation:
    """Versions are made from those with smaller numbers."""
    count = draw(st.integers(1, 9))
    facts = {}
    for one in range(count):
        is_accepted = draw(st.integers(0, 9)) == 0
        own = QualityState.VALID if is_accepted else draw(st.sampled_from(STATES))
        facts[one] = VersionFacts(own, is_accepted, is_present=draw(st.booleans()))
    made_from, rollups = {}, set()
    for one in range(1, count):
        sources = draw(st.sets(st.integers(0, one - 1), max_size=3))
        if sources:
            made_from[one] = sorted(sources)
            if draw(st.booleans()):
                rollups.add(one)
    return Propagation(facts, made_from, rollups)


def until_nothing_changes(of: Propagation) -> tuple[set[int], set[int], dict[QualityState, set[int]]]:
    """Versions that are invalid, those among them as a whole, and those above what is unchecked or backfilled."""
    facts = of.facts
    whole = {one for one, known in facts.items() if known.own is QualityState.INVALID}
    invalid = set(whole)
    awaited = {
        state: {one for one, known in facts.items() if known.own is state}
        for state in (QualityState.UNCHECKED, QualityState.BACKFILLED)
    }
    for _ in range(3 * len(facts)):
        for output, sources in of.made_from.items():
            if not facts[output].is_accepted and any(one in invalid for one in sources):
                invalid.add(output)
            for found in awaited.values():
                if output in of.rollups and not facts[output].is_accepted and any(one in found for one in sources):
                    found.add(output)
            if output in of.rollups and output in whole:
                for part in sources:
                    is_cleared = facts[part].is_present and not facts[output].is_present
                    if not (is_cleared or facts[part].is_accepted):
                        whole.add(part)
                        invalid.add(part)
    return invalid, whole, awaited


def expected(of: Propagation) -> Mapping[int, QualityState]:
    invalid, _, awaited = until_nothing_changes(of)
    found = {}
    for one, known in of.facts.items():
        if one in invalid:
            found[one] = QualityState.INVALID
        elif one in awaited[QualityState.BACKFILLED]:
            found[one] = QualityState.BACKFILLED
        elif one in awaited[QualityState.UNCHECKED]:
            found[one] = QualityState.UNCHECKED
        elif known.own is QualityState.VALID:
            found[one] = QualityState.VALID
    return found


@given(propagations())
def test_states_are_those_found_by_hand(of: Propagation) -> None:
    found = of.states()
    assert {one: known.state for one, known in found.items()} == expected(of)
    _, whole, _ = until_nothing_changes(of)
    for one, known in found.items():
        assert of.facts[known.origin].own is known.state
        assert (known.way is Way.OWN) == (known.origin == one) == (of.facts[one].own is known.state)
        if known.way is Way.PART_OF:
            assert one in whole


@given(propagations())
def test_marks_are_gone_once_everything_invalid_is_accepted(of: Propagation) -> None:
    accepted = VersionFacts(QualityState.VALID, is_accepted=True)
    facts = {one: accepted if known.own is QualityState.INVALID else known for one, known in of.facts.items()}
    states = Propagation(facts, of.made_from, of.rollups).states()
    assert QualityState.INVALID not in {one.state for one in states.values()}


def own(state: QualityState | None, **facts: bool) -> VersionFacts:
    return VersionFacts(state, **facts)


INVALID, VALID = QualityState.INVALID, QualityState.VALID


def test_an_invalid_hour_marks_what_is_below_and_above_and_what_was_made_from_it() -> None:
    """Slots 1 and 2 make hour 3 and, with slot 0, window 4; the hours make day 5; 6 was made from 3, and 7 from 1."""
    facts = {one: own(INVALID if one == 3 else None) for one in range(8)}
    of = Propagation(facts, {3: [1, 2], 4: [0, 1], 5: [3], 6: [3], 7: [1]}, {3, 4, 5})
    assert of.states() == {
        3: FoundState(INVALID, Way.OWN, 3),
        1: FoundState(INVALID, Way.PART_OF, 3),
        2: FoundState(INVALID, Way.PART_OF, 3),
        4: FoundState(INVALID, Way.CONTAINS_PART_OF, 3),
        5: FoundState(INVALID, Way.CONTAINS, 3),
        6: FoundState(INVALID, Way.MADE_FROM, 3),
        7: FoundState(INVALID, Way.MADE_FROM, 3),
    }


def test_a_valid_backfill_clears_all_but_what_was_not_made_again() -> None:
    """Hour 3 was made of slots 0 and 1; slot 2 replaced 1, and hour 4 hour 3. From them 5 was made, 6 from 4."""
    facts = {
        0: own(None),
        1: own(None, is_present=False),
        2: own(None),
        3: own(INVALID, is_present=False),
        4: own(VALID),
        5: own(None),
        6: own(None),
    }
    states = Propagation(facts, {3: [0, 1], 4: [0, 2], 5: [3], 6: [4]}, {3, 4}).states()
    assert {one: known.way for one, known in states.items()} == {
        3: Way.OWN,
        1: Way.PART_OF,
        4: Way.OWN,
        5: Way.MADE_FROM,
    }
    assert states[4].state is VALID
