"""Which versions of an instance are kept, from what was said of it."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import (
    FeedInstanceAvailable,
    FeedInstanceEvicted,
    FeedVersionEvicted,
    KeptVersion,
)
from falcon_assets.history.folding.kept_versions import Kept
from falcon_assets.history.folding.reduce import Rows
from tests.hours import hour

KEY = ("primary", "raw", hour(0))


def came(version: str, at: datetime, *kept: str, keeps: bool = True) -> FeedInstanceAvailable:
    beside = tuple(KeptVersion(one, f"/kept/{one}") for one in kept) if keeps else None
    return FeedInstanceAvailable(*KEY, version, at, process="p", path="/raw", kept_versions=beside)


def evicted(version: str, at: datetime) -> FeedVersionEvicted:
    return FeedVersionEvicted(*KEY, version, at, "too old")


def kept_after(*facts: Fact) -> dict[str, Kept]:
    rows = Rows()
    rows.apply(Logged(number, fact, "run") for number, fact in enumerate(facts, 1))
    return dict(rows.kept.get(KEY, {}))


FIRST, SECOND = came("a", hour(1)), came("b", hour(2), "a")


@pytest.mark.parametrize(
    ("facts", "kept"),
    [
        pytest.param([came("a", hour(1), keeps=False)], {}, id="a feed that keeps none"),
        pytest.param([FIRST, came("a", hour(2))], {}, id="the same again"),
        pytest.param([FIRST, SECOND], {"a": hour(2)}, id="replaced"),
        pytest.param([FIRST, SECOND, came("b", hour(3), "a")], {"a": hour(2)}, id="and the same again"),
        pytest.param([FIRST, SECOND, came("a", hour(3), "b")], {"b": hour(3)}, id="restored"),
        pytest.param([FIRST, SECOND, came("a", hour(3), "a", "b")], {"b": hour(3)}, id="restored by what was killed"),
        pytest.param([FIRST, came("c", hour(3), "a", "b")], {"a": hour(3), "b": hour(3)}, id="by a killed run, too"),
        pytest.param([FIRST, SECOND, came("c", hour(3), keeps=False)], {"a": hour(2)}, id="declared no more"),
        pytest.param([FIRST, SECOND, came("a", hour(3), keeps=False)], {}, id="made again by who keeps none"),
        pytest.param([FIRST, SECOND, came("c", hour(3), "b")], {"b": hour(3)}, id="taken away by hand"),
        pytest.param([FIRST, SECOND, evicted("a", hour(9))], {}, id="evicted"),
        pytest.param([FIRST, SECOND, evicted("x", hour(9))], {"a": hour(2)}, id="what is not there is evicted"),
        pytest.param([evicted("a", hour(9))], {}, id="of an unknown instance"),
        pytest.param([FIRST, SECOND, FeedInstanceEvicted(*KEY, "delete", hour(5))], {"a": hour(2)}, id="instance gone"),
    ],
)
def test_kept(facts: list[Fact], kept: dict[str, datetime]) -> None:
    assert kept_after(*facts) == {version: Kept(f"/kept/{version}", at) for version, at in kept.items()}


TIMES, NAMES = st.integers(0, 9).map(hour), st.sampled_from("abcd")
FACTS = st.lists(
    st.builds(
        lambda version, at, kept, keeps: came(version, at, *kept, keeps=keeps),
        NAMES,
        TIMES,
        st.sets(NAMES),
        st.booleans(),
    )
    | st.builds(evicted, NAMES, TIMES)
)


@given(FACTS)
def test_what_was_said_last_is_kept_and_never_what_is_there(facts: list[Fact]) -> None:
    kept, since = set[str](), dict[str, datetime]()
    for fact in facts:
        if isinstance(fact, FeedInstanceAvailable):
            said = kept if fact.kept_versions is None else {one.version for one in fact.kept_versions}
            new = said - {fact.version}
            since |= dict.fromkeys(new - kept, fact.seen_at)
            kept = new
        elif isinstance(fact, FeedVersionEvicted):
            kept.discard(fact.version_evicted)
    assert {version: row.replaced_at for version, row in kept_after(*facts).items()} == {
        one: since[one] for one in kept
    }
