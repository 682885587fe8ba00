"""Verdicts and the share that was reached are transitions of instances, in the order of history, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import dagster as dg
import pytest
from sqlalchemy import select

from falcon_assets.features.completeness.records import CompletenessRecorded
from falcon_assets.features.messaging.operations import TailEvents
from falcon_assets.features.quality.events import HeldAccepted, InstanceChecked, InvalidAccepted, OutputHeld
from falcon_assets.features.quality.held_outputs import held_output
from falcon_assets.features.quality.store import attempts_of, begin_attempt
from falcon_assets.features.quality.verdict import InstanceVerdict, QualityResult
from falcon_assets.history.events.event_log import Fact
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceWithdrawn
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.folding.fold import rebuild
from falcon_assets.history.tables import NOTIFICATION_EVENTS
from falcon_assets.operations.installation import open_installation
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings
from tests.features.messaging.world import START, World, kinds
from tests.ledger.histories import history_of

RAW = ("primary", "raw", START)
FAILED = (QualityResult("unique_id", "unique", "error", passed=False, said="1 of 2 rows: id is as in another row"),)


def there(version: str = "v1", **more: object) -> Fact:
    return FeedInstanceAvailable(*RAW, version, START, **more)  # type: ignore[arg-type]


def valid(version: str = "v1") -> Fact:
    return InstanceChecked(*RAW, InstanceVerdict.VALID, version, START, "quick", 2)


def invalid(version: str = "v1") -> Fact:
    return InstanceChecked(*RAW, InstanceVerdict.INVALID, version, START, "full", 2, FAILED)


def accepted(version: str = "v1") -> Fact:
    return InvalidAccepted(*RAW, "ann", version, START, "a holiday")


def complete(*, taken: bool = False) -> Fact:
    return CompletenessRecorded(*RAW, START, "99.5", 99.8, 1000, 998, taken)


def held(*checks: QualityResult, feed: str = "raw") -> Fact:
    return OutputHeld("primary", feed, START, "file:///aside", "hourly", START, START, "quick", 2, checks)


def published_after_all() -> list[Fact]:
    accepted_when_held = ("ann", START, "a holiday")
    checked = InstanceChecked(*RAW, InstanceVerdict.INVALID, "v1", START, "quick", 2, FAILED)
    overruled = dict(zip(("overruled_by", "overruled_at", "overruled_reason"), accepted_when_held, strict=True))
    succeeded = InstanceChanged("hourly", "primary", START, InstanceState.SUCCEEDED, START)
    return [there(process="hourly", nominal=START), replace(checked, checked_staged=True, **overruled), succeeded]


GONE = FeedInstanceWithdrawn(*RAW, "not there", START)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param([there(), valid()], "LANDED VALID", id="valid"),
        pytest.param([there(), valid(), valid()], "LANDED VALID", id="checked again"),
        pytest.param([there(), invalid(), valid()], "LANDED INVALID VALID", id="another verdict"),
        pytest.param([there(), invalid(), accepted(), accepted()], "LANDED INVALID VALID", id="accepted"),
        pytest.param([there(), invalid(), accepted(), invalid()], "LANDED INVALID VALID", id="stays accepted"),
        pytest.param([there(), accepted(), valid()], "LANDED VALID", id="accepted without a verdict"),
        pytest.param(
            [there(), invalid(), there("v2"), valid("v2")], "LANDED INVALID LANDED BACKFILLED VALID", id="backfilled"
        ),
        pytest.param(
            [there(), invalid(), accepted(), there("v2")], "LANDED INVALID VALID LANDED", id="accepted, then replaced"
        ),
        pytest.param([there(), valid(), there("v2")], "LANDED VALID LANDED", id="a valid one is replaced"),
        pytest.param(
            [there(), valid(), there("v2"), invalid("v2"), there()],
            "LANDED VALID LANDED INVALID LANDED BACKFILLED VALID",
            id="the first version comes back",
        ),
        pytest.param([there(), invalid(), GONE, there()], "LANDED INVALID WITHDRAWN LANDED INVALID", id="it was away"),
        pytest.param(
            [there(), valid(), there("v2"), there(restored_by="ann")],
            "LANDED VALID LANDED RESTORED VALID",
            id="restored",
        ),
        pytest.param([held(*FAILED), held(*FAILED)], "HELD HELD", id="held"),
        pytest.param(
            [held(*FAILED), HeldAccepted(*RAW, "ann", START), *published_after_all()],
            "HELD LANDED VALID SUCCEEDED",
            id="held, then accepted",
        ),
        pytest.param([there(), complete(), valid()], "LANDED SHARE_REACHED VALID", id="complete"),
        pytest.param([there(), complete(taken=True)], "LANDED", id="taken incomplete"),
    ],
)
def test_transitions_are_in_the_order_of_history_however_it_is_cut(
    facts: Sequence[Fact], expected: str, settings: Settings, instance: dg.DagsterInstance
) -> None:
    def told(*portions: Sequence[Fact]) -> list[tuple[str, str]]:
        world = World(settings, instance, primary={"endpoint": "http://127.0.0.1:9/"})
        for portion in portions:
            world.happens(*((None, one) for one in portion))
        with world.ledger.engine.begin() as connection:
            rows = connection.execute(select(NOTIFICATION_EVENTS).order_by(NOTIFICATION_EVENTS.c.id)).all()
        rebuild(world.ledger.engine, history_of(world.logged))
        with world.ledger.engine.begin() as connection:
            again = connection.execute(select(NOTIFICATION_EVENTS).order_by(NOTIFICATION_EVENTS.c.id)).all()
        assert again == rows
        return [(row.event, row.source) for row in rows]

    whole = told(facts)
    assert " ".join(event for event, _ in whole) == expected
    assert told(*([one] for one in facts)) == whole


def test_events_say_why_and_of_which_version(settings: Settings, instance: dg.DagsterInstance) -> None:
    world = World(settings, instance, primary={"endpoint": "http://127.0.0.1:9/", "on": ["INVALID", "BACKFILLED"]})
    world.happens(*((None, one) for one in (there(), complete(), invalid(), there("v2"), valid("v2"))))
    world.record()
    with open_installation(world.settings) as installation:
        found = [dict(one.event) for one in TailEvents().run(installation).items]
    assert kinds(found) == ["INVALID", "BACKFILLED"]
    bad, replaced = (one["data"] for one in found)
    assert (bad["reason"], bad["version"]) == ("unique_id: 1 of 2 rows: id is as in another row", "v1")
    assert (replaced["version"], replaced["previous_version"]) == ("v2", "v1")
    assert found[0]["type"] == "org.falcon-assets.instance.invalid"


def test_events_say_what_is_held_and_who_accepted_it(settings: Settings, instance: dg.DagsterInstance) -> None:
    world = World(settings, instance, primary={"endpoint": "http://127.0.0.1:9/", "on": ["HELD", "VALID"]})
    world.happens(*((None, one) for one in (held(*FAILED), held(feed="sums"), *published_after_all())))
    world.record()
    with open_installation(world.settings) as installation:
        found = [dict(one.event) for one in TailEvents().run(installation).items]
    assert kinds(found) == ["HELD", "HELD", "VALID"]
    wrong, other, accepted_one = (one["data"] for one in found)
    assert (wrong["reason"], wrong["process"], wrong["records"], wrong["held_at"]) == (
        *("unique_id: 1 of 2 rows: id is as in another row", "hourly", 2, "file:///aside"),
    )
    assert other["reason"] == "it is published with another output of hourly, which failed its checks"
    assert (accepted_one["reason"], accepted_one["version"]) == ("accepted by ann: a holiday", "v1")


@pytest.mark.parametrize("at_once", [True, False])
def test_nothing_is_held_of_an_instance_that_has_succeeded_since(
    settings: Settings, instance: dg.DagsterInstance, at_once: bool
) -> None:
    """However that came about, and however history is cut: its feed may hold nothing any more."""
    world = World(settings, instance, primary={"endpoint": "http://127.0.0.1:9/"})

    def happen(*facts: Fact) -> list[bool]:
        for portion in [facts] if at_once else [[one] for one in facts]:
            world.happens(*((None, one) for one in portion))
        with world.ledger.engine.connect() as connection:
            return [held_output(connection, ("primary", feed, START)) is not None for feed in ("raw", "sums")]

    succeeded = InstanceChanged("hourly", "primary", START, InstanceState.SUCCEEDED, START)
    failed = InstanceChanged("hourly", "primary", START, InstanceState.FAILED, START)
    assert happen(held(*FAILED), held(feed="sums"), failed, there("v2")) == [True, True]
    assert happen(replace(succeeded, process="another")) == [True, True]
    assert happen(succeeded) == [False, False]
    assert happen(held(*FAILED), failed, succeeded, held(feed="sums")) == [False, True]


def test_a_verdict_ends_all_attempts(settings: Settings, instance: dg.DagsterInstance) -> None:
    """In the same transaction: no kill leaves one without the other."""
    world = World(settings, instance, primary={"endpoint": "http://127.0.0.1:9/"})
    other = ("primary", "sums", START)
    with world.ledger.engine.begin() as connection:
        assert [begin_attempt(connection, RAW, "v1"), begin_attempt(connection, RAW, "v2")] == [1, 1]
        assert begin_attempt(connection, other, "v1") == 1
    world.happens((None, invalid("v2")))
    with world.ledger.engine.connect() as connection:
        left = [attempts_of(connection, *one) for one in ((RAW, "v1"), (RAW, "v2"), (other, "v1"))]
    assert [one is not None for one in left] == [False, False, True]
