"""Passes of retention over versions: what goes, what is recorded, and what a kill leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import dagster as dg
import pytest

from falcon_assets.features.lineage.lifecycle_operations import set_lifecycle
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.features.retention.operations import PlanRetention
from falcon_assets.features.retention.passes import PassResult, RetentionPass
from falcon_assets.features.versions.operations import instance_versions
from falcon_assets.history.events.event_log import materialization, observation
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.folding.kept_versions import kept_of
from falcon_assets.model.feed import LifecycleStatus
from falcon_assets.operations.audit import PlainRequest
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.eviction import cadence
from falcon_assets.storage.output_target import output_target
from tests.hours import hour
from tests.operations.opening import OpenAt
from tests.versioned import TREE, kept, place, present, publish, without_versions

KEY = dg.AssetKey(["primary", "totals"])


@pytest.fixture
def installed(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path], instance: dg.DagsterInstance
) -> Iterator[Callable[[str], Installation]]:
    """The installation at a time, which may be asked for again and again."""
    write_entities(TREE)
    opened = []

    def at(time: str) -> Installation:
        manager = open_at(time)
        opened.append(manager)
        return manager.__enter__()

    yield at
    for manager in opened:
        manager.__exit__(None, None, None)


def run(installation: Installation, passing: RetentionPass | None = None, *, killed: bool = False) -> PassResult:
    """A pass, over the feed if not another one, which may be killed before it records anything."""
    entities, settings = installation.entities, installation.settings

    def record(events: Sequence[dg.AssetObservation]) -> None:
        if killed:
            raise KeyboardInterrupt
        for event in events:
            installation.ledger.instance.report_runless_asset_event(event)

    retention = passing or RetentionPass(entities, entities.cluster("primary"), [entities.feed("totals")], settings, 0)
    passed = retention.run(installation.ledger, "run", record)
    installation.ledger.catch_up()
    return passed


def known(installation: Installation, number: int) -> set[str]:
    """What the ledger says is kept."""
    key = ("primary", "totals", hour(number))
    with installation.ledger.engine.connect() as connection:
        return set(kept_of(connection, [key]).get(key, {}))


def planned(installation: Installation, number: int) -> dict[str, tuple[bool, str]]:
    (plan,) = PlanRetention(feed="totals", cluster="primary").run(installation)
    return {one.kept.version: (one.goes, one.reason) for one in plan.versions if one.kept.nominal == hour(number)}


def test_versions_go_by_their_number_and_by_their_age(installed: Callable[[str], Installation]) -> None:
    versions = [publish(installed(f"2013-01-01T0{at}:00Z"), str(at), hour(1)) for at in range(2, 6)]
    now = installed("2013-01-01T09:00Z")
    assert planned(now, 1) == {
        versions[0]: (True, "2 were replaced later (versions.keep)"),
        versions[1]: (False, "one of the last 2 that were replaced"),
        versions[2]: (False, "one of the last 2 that were replaced"),
    }
    assert run(now) == PassResult(0, 0, (), 0, 1)
    assert kept(now, hour(1)) == known(now, 1) == set(versions[1:3])
    assert run(now) == PassResult(0, 0, ())
    later = installed("2013-01-01T10:30Z")
    assert planned(later, 1)[versions[1]] == (True, "replaced more than hours(6) ago (versions.for)")
    assert run(later).versions == 1
    assert kept(later, hour(1)) == known(later, 1) == {versions[2]}
    assert present(later, hour(1)) == "5"
    asked = dg.AssetRecordsFilter(asset_key=KEY, asset_partitions=["2013-01-01T01:00Z"])
    event = later.ledger.instance.fetch_observations(asked, 1).records[0].event_log_entry.asset_observation
    assert event is not None
    assert event.description == (
        f"version {versions[1]} of totals 2013-01-01T01:00Z was removed: replaced more than hours(6) ago (versions.for)"
    )
    states = {one.version: one.state for one in instance_versions(later, "totals", hour(1)).versions}
    assert states == {
        **dict.fromkeys(versions[:2], "REPLACED"),
        versions[2]: "KEPT",
        versions[3]: "AVAILABLE",
    }


def test_a_pass_that_was_killed_after_it_removed_a_version_is_completed(
    installed: Callable[[str], Installation],
) -> None:
    now = installed("2013-01-01T06:00Z")
    versions = [publish(now, text, hour(2)) for text in ("a", "b", "c", "d")]
    with pytest.raises(KeyboardInterrupt):
        run(now, killed=True)
    (gone,) = known(now, 2) - kept(now, hour(2))
    assert planned(now, 2)[gone] == (True, "it is not there any more")
    assert run(now).versions == 1
    assert known(now, 2) == kept(now, hour(2)) == set(versions[:3]) - {gone}


def test_what_somebody_took_away_is_kept_no_more(installed: Callable[[str], Installation]) -> None:
    now = installed("2013-01-01T06:00Z")
    one, _ = publish(now, "one", hour(3)), publish(now, "two", hour(3))
    storage = place(now).storage
    (found,) = storage.kept_versions("totals", hour(3))
    storage.store.files.remove_tree(storage.store.path(found.path))
    assert run(now).problems == ()
    assert one not in known(now, 3)


def test_versions_follow_their_instance(installed: Callable[[str], Installation]) -> None:
    now = installed("2013-01-01T06:00Z")
    one, _ = publish(now, "one", hour(4)), publish(now, "two", hour(4))
    gone = FeedInstanceEvicted("primary", "totals", hour(4), "delete", hour(6))
    now.ledger.instance.report_runless_asset_event(observation(KEY, "2013-01-01T04:00Z", gone))
    assert planned(now, 4) == {one: (True, "its instance was evicted")}
    run(now)
    assert one not in kept(now, hour(4))
    assert known(now, 4) == set()


def test_versions_of_a_feed_that_keeps_none_any_more_go(installed: Callable[[str], Installation]) -> None:
    now = installed("2013-01-01T06:00Z")
    one, _ = publish(now, "one", hour(5)), publish(now, "two", hour(5))
    without_versions(now)
    assert planned(now, 5) == {one: (True, "the feed keeps no versions")}
    assert cadence(now.entities.feed("totals"), "primary") is None
    others = RetentionPass(now.entities, now.entities.cluster("primary"), (), now.settings, 0)
    assert others.has_leftovers(now.ledger)
    assert run(now, others).problems == ()
    assert kept(now, hour(5)) == known(now, 5) == set()
    assert not others.has_leftovers(now.ledger)


def test_a_version_stays_while_its_instance_is_written(installed: Callable[[str], Installation]) -> None:
    now = installed("2013-01-01T06:00Z")
    for text in ("a", "b", "c", "d"):
        publish(now, text, hour(6))
    found = place(now, hour(6))
    with found.storage.publish("add-up", {"out": output_target(found.feed, hour(6), found.path)}):
        (problem,) = run(now).problems
    assert problem.startswith("totals 2013-01-01T06:00Z version ")
    assert problem.endswith("it is being written by a run; it goes when that has ended")
    assert run(now).versions == 1


def test_a_feed_that_only_keeps_versions_has_passes(installed: Callable[[str], Installation]) -> None:
    feed = installed("2013-01-01T06:00Z").entities.feed("totals")
    assert str(cadence(feed, "primary")) == "hours(6)"


def set_status(installation: Installation, number: int, version: str, status: LifecycleStatus) -> None:
    query = VersionQuery("totals", hour(number), version=version)
    set_lifecycle(installation, query, status, PlainRequest(reason="in the report"))


def test_a_version_that_is_critical_stays_whatever_its_feed_keeps(installed: Callable[[str], Installation]) -> None:
    now = installed("2013-01-01T06:00Z")
    for text in ("a", "b", "c", "d", "e"):
        publish(now, text, hour(6))
    first, _ = (version for version, (goes, _) in planned(now, 6).items() if goes)
    set_status(now, 6, first, "critical")
    why = f"primary/totals/2013-01-01T06:00Z@{first} is critical"
    assert planned(now, 6)[first] == (False, why)
    assert run(now).versions == 1
    assert first in kept(now, hour(6))
    asked = dg.AssetRecordsFilter(asset_key=KEY)
    events = [one.event_log_entry.asset_observation for one in now.ledger.instance.fetch_observations(asked, 5).records]
    (event,) = [one for one in events if one and one.partition is None]
    assert event.description == "totals: 1 outlived their limit and are kept"
    (told,) = event.metadata["kept_instances"].value
    assert (told["reason"], told["reason_data"]["kind"]) == (why, "protected")
    set_status(now, 6, first, "test")
    assert run(now).versions == 1
    assert first not in kept(now, hour(6))


def test_what_a_critical_version_was_made_from_stays(
    installed: Callable[[str], Installation], write_entities: Callable[[dict[str, str]], Path]
) -> None:
    """Archived or deleted: neither happens to the inputs of what is critical, and they name it."""
    end = "end: 2013-01-02T00:00Z}\n---\nkind: process"
    limited = end.replace("\n---", "\n    retention: {limit: hours(2)}\n---")
    write_entities({**TREE, "all.yaml": TREE["all.yaml"].replace(end, limited)})
    now = installed("2013-01-01T20:00Z")
    needed, _ = publish(now, "needed", hour(7)), publish(now, "other", hour(8))
    sums = FeedInstanceAvailable(
        *("primary", "sums", hour(7), "s1", hour(9)),
        process="sum-up",
        nominal=hour(7),
        inputs={"totals": (Consumption("totals", hour(7), needed),)},
    )
    now.ledger.instance.report_runless_asset_event(materialization(dg.AssetKey(["primary", "sums"]), None, sums))
    now.ledger.catch_up()
    set_lifecycle(now, VersionQuery("sums", hour(7)), "critical", PlainRequest(reason="in the report"))
    passed = run(now)
    (plan,) = PlanRetention(feed="totals", cluster="primary").run(now)
    (verdict,) = plan.verdicts
    assert verdict.instance.nominal == hour(7)
    assert verdict.reason == "primary/sums/2013-01-01T07:00Z@s1 is critical, and was made from it"
    assert present(now, hour(7)) == "needed"
    assert passed.problems == ()
