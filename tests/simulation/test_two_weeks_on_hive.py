"""The two simulated weeks with all data in tables of a real Hive Metastore."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.simulation.declared import entities, nominal, on_files
from tests.simulation.player import Player
from tests.simulation.test_two_weeks import *  # noqa: F403
from tests.simulation.test_two_weeks import pytestmark
from tests.simulation.world import Feed

__all__ = ["pytestmark"]


def declare_in_tables(hive: str) -> Callable[..., str]:
    """Says what is declared: both clusters have the same registry, and each feed has a table for each.

    Its producer makes it. Other tests that have the registry, too, get tables of other names.
    """
    run = uuid.uuid4().hex[:8]

    def in_table(feed: Feed) -> dict[str, Any]:
        uri = f"catalog:default:{feed.name}_{run}_${{cluster.name}}#ds={nominal(feed)}"
        return {"format": "parquet", "schema": "value string", "table": {"uri": uri, "create": True}}

    def place(cluster: str) -> dict[str, Any]:
        files = on_files(cluster)
        return {**files, "interfaces": {**files["interfaces"], "registry": {"endpoint": hive}}}

    return partial(entities, place=place, stored=in_table)


@pytest.fixture(scope="module")
def declare(hive: str) -> Callable[..., str]:
    return declare_in_tables(hive)


def test_what_was_replaced_stays_for_a_day(player: Player) -> None:
    (kept,) = (player.settings.home / "data/primary/tables/default").glob("cleaned_*_primary/_versions")
    versions = [one for place in kept.iterdir() if place.name != "_notes" for one in place.iterdir()]
    assert len(versions) > len([place for place in kept.iterdir() if place.name != "_notes"])
