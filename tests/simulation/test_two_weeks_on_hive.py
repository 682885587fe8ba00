"""The two simulated weeks with all data in tables of a real Hive Metastore."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.declared import entities_in_tables
from tests.simulation.player import Player
from tests.simulation.test_two_weeks import *  # noqa: F403
from tests.simulation.test_two_weeks import pytestmark

__all__ = ["pytestmark"]


@pytest.fixture(scope="module")
def declare(hive: str) -> Callable[..., str]:
    """Says what is declared."""
    return entities_in_tables(hive)


def test_what_was_replaced_stays_for_a_day(player: Player) -> None:
    (kept,) = (player.settings.home / "data/primary/tables/default").glob("cleaned_*_primary/_versions")
    versions = [one for place in kept.iterdir() if place.name != "_notes" for one in place.iterdir()]
    assert len(versions) > len([place for place in kept.iterdir() if place.name != "_notes"])
