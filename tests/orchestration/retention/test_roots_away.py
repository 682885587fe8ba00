"""While a root is away nothing counts as gone: not for passes of retention, not for collectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from falcon_assets.features.landing.collector import Collector
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.orchestration.retention.test_passes import FEED, RETENTION, RetainedWorld
from tests.world import MakeWorld

FEEDS = {"empty": ["raw-1", "versioned-1"], "not there": ["raw-2", "versioned-2"]}


@pytest.fixture(scope="module")
def world(make_world: MakeWorld) -> RetainedWorld:
    feeds = ""
    for name in (name for names in FEEDS.values() for name in names):
        feeds += FEED.format(name=name, retention=RETENTION, schedule="true")
        feeds += "versions: {keep: 1}\n" if name.startswith("versioned") else ""
    return make_world({"all.yaml": cluster_yaml() + feeds}, RetainedWorld)


@contextmanager
def away(world: RetainedWorld, how: str) -> Iterator[None]:
    """As after ``umount``: where the root was there is an empty folder, or nothing."""
    root = world.settings.home / "data/primary"
    root.rename(elsewhere := root.with_name("elsewhere"))
    if how == "empty":
        root.mkdir()
    try:
        yield
    finally:
        if how == "empty":
            root.rmdir()  # which nothing was written to
        assert not root.exists()
        elsewhere.rename(root)


@pytest.mark.parametrize("how", FEEDS)
def test_what_is_on_a_root_that_is_away_stays_what_it_was(world: RetainedWorld, how: str) -> None:
    feeds = FEEDS[how]
    for feed in feeds:
        world.land(feed, 0, 1, 2)
    world.collect("02:30")
    world.decide(feeds[0], "03:00")  # as a pass that was killed before it touched anything
    with away(world, how):
        for feed in feeds:
            passed = world.run(feed, "05:00")
            assert (passed.instances, passed.versions, passed.copies) == (0, 0, 0)
            assert all("its root" in one and "is away" in one for one in passed.problems)
            assert passed.problems
        collector = Collector(world.store, world.store.cluster("primary"), world.at("05:00"))
        found = collector.collect(world.ledger, 60)
        assert found.recorded == 0
        assert len(found.problems) + sum(found.left_out.values()) == 4  # its store is left alone after two
        assert all("is away" in one for one in (*found.problems.values(), *found.left_out))
        world.ledger.catch_up()
    for feed in feeds:
        assert world.states(feed) == dict.fromkeys((0, 1, 2), "AVAILABLE")
        assert world.run(feed, "05:00").instances == 3
        assert world.states(feed) == dict.fromkeys((0, 1, 2), "EVICTED")
        assert world.row(feed, 0).evicted_at == hour(5)
