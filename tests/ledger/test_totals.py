"""Totals beside the rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import Engine

import falcon_assets.history
from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.folding.fold import fold, rebuild
from falcon_assets.history.folding.totals import Total, totals
from falcon_assets.planning.instance_record import InstanceState
from tests.hours import hour
from tests.ledger.histories import history_of

LARGEST = 2**63 - 1
MIGRATIONS = Path(falcon_assets.history.__file__).parent / "migrations"


def copied(number: int, size: int | None) -> InstanceChanged:
    return InstanceChanged(
        "raw from east", "west", hour(number), InstanceState.SUCCEEDED, hour(number), bytes_copied=size
    )


def evicted(number: int, size: int, action: str = "delete") -> FeedInstanceEvicted:
    return FeedInstanceEvicted("west", "raw", hour(number), action, hour(9), bytes=size)


def logged(facts: Iterable[Fact]) -> list[Logged]:
    return [Logged(place, fact, "run") for place, fact in enumerate(facts, 1)]


def known(engine: Engine) -> set[Total]:
    with engine.connect() as connection:
        return set(totals(connection))


FACTS = logged(
    [
        FeedInstanceAvailable("west", "raw", hour(0), "v1", hour(1)),
        copied(0, 10),
        copied(1, 5),
        copied(1, 5),  # once more: it is copied again
        copied(2, None),
        evicted(0, 7),
        evicted(0, 7),  # said twice by a pass that was killed
        evicted(1, 3, "archive"),
    ]
)
FOUND = {
    Total("feed", "raw", "west", "EVICTED", 2),
    Total("process", "raw from east", "west", "SUCCEEDED", 3),
    Total("copied_bytes", "raw from east", "west", "", 20),
    Total("evicted_bytes", "raw", "west", "delete", 7),
    Total("evicted_bytes", "raw", "west", "archive", 3),
}


def test_totals_are_what_happened_in_any_parts_and_after_a_rebuild(engine: Engine) -> None:
    fold(engine, history_of(FACTS, [1]))
    assert known(engine) == FOUND
    rebuild(engine, history_of(FACTS))
    assert known(engine) == FOUND


def test_more_bytes_than_an_integer_of_the_database(engine: Engine) -> None:
    """Whoever writes such an event must not stop the fold."""
    fold(engine, history_of(logged([copied(0, LARGEST), copied(1, LARGEST)])))
    assert Total("copied_bytes", "raw from east", "west", "", 2 * LARGEST) in known(engine)
