"""Versions with the same rows: what compaction published is no news, in whatever order its events come."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import permutations

import pytest

from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted, RowsKept
from falcon_assets.history.folding.reduce import Rows
from falcon_assets.history.tables.row_values import FeedInstanceRow
from tests.hours import hour

WHERE = ("primary", "f", hour(0))
LANDED = FeedInstanceAvailable(*WHERE, "v1", hour(1), files=3)
ABOUT_TO = RowsKept(*WHERE, "v2", "v1", hour(2))
COLLECTED = FeedInstanceAvailable(*WHERE, "v2", hour(2) + timedelta(minutes=1), files=1)
COMPACTED = replace(COLLECTED, process="f compaction", same_rows_as="v1")


def after(*facts: Fact) -> FeedInstanceRow:
    rows = Rows()
    rows.apply(Logged(number, fact, "run") for number, fact in enumerate(facts, start=1))
    return rows.feeds[WHERE]


ORDERS = [*permutations((ABOUT_TO, COLLECTED, COMPACTED)), (ABOUT_TO, COLLECTED), (COMPACTED,)]


@pytest.mark.parametrize("facts", ORDERS)
def test_what_is_compacted_has_the_rows_of_what_was_there(facts: tuple[Fact, ...]) -> None:
    row = after(LANDED, *facts)
    assert (row.version, row.same_rows, row.files) == ("v2", "v1", 1)


@pytest.mark.parametrize("facts", [(ABOUT_TO, COLLECTED, COMPACTED), (COMPACTED, ABOUT_TO), (COMPACTED,)])
def test_it_came_when_the_first_of_them_came(facts: tuple[Fact, ...]) -> None:
    row = after(LANDED, *facts)
    assert (row.version_event, row.seen_at, row.changes, row.previous_version) == (1, hour(1), 1, "v1")


def test_what_is_compacted_again_has_the_rows_of_both() -> None:
    again = replace(COMPACTED, version="v3", same_rows_as="v2")
    assert after(LANDED, COMPACTED, again).same_rows == "v1 v2"


def test_what_comes_after_it_has_other_rows() -> None:
    late = replace(LANDED, version="v3", seen_at=hour(3))
    row = after(LANDED, COMPACTED, late)
    assert (row.version, row.same_rows, row.version_event, row.seen_at) == ("v3", None, 3, hour(3))


def test_a_compaction_that_was_not_published_changes_nothing() -> None:
    late = replace(LANDED, version="v3", seen_at=hour(3))
    assert after(LANDED, ABOUT_TO).version == "v1"
    assert after(LANDED, ABOUT_TO, late).same_rows is None


def test_what_is_restored_is_what_was_compacted() -> None:
    restored = replace(LANDED, restored_by="ann", seen_at=hour(4))
    row = after(LANDED, COMPACTED, restored)
    assert (row.version, row.same_rows, row.version_event) == ("v1", "v2", 1)


def test_what_comes_back_after_an_eviction_is_new() -> None:
    evicted = FeedInstanceEvicted(*WHERE, "deleted", hour(3))
    again = replace(LANDED, seen_at=hour(4))
    row = after(LANDED, COMPACTED, evicted, again)
    assert row.version_event == 4
