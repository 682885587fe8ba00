"""The two simulated weeks with all data in tables of an Iceberg catalog, where some of the feeds keep versions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.kinds.kind_of import kind_of
from tests.registries import iceberg
from tests.simulation.declared import entities_in_tables
from tests.simulation.player import Player
from tests.simulation.scenario import PRIMARY
from tests.simulation.test_two_weeks import *  # noqa: F403
from tests.simulation.test_two_weeks import pytestmark

__all__ = ["pytestmark"]
KEEP = ("cleaned", "daily", "audited")


@pytest.fixture(scope="module")
def declare(database: str) -> Callable[..., str]:
    """Says what is declared."""
    return partial(entities_in_tables(iceberg(database)), keep=KEEP)


def test_what_was_replaced_is_kept(player: Player) -> None:
    settings, cluster = player.settings, player.store.cluster(PRIMARY)
    for name in KEEP:
        feed = player.store.feed(name)
        assert kind_of(store_of(feed, cluster, settings.home, settings.environ)).kept_versions(name)
