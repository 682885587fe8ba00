"""Everything is killed at random moments of two simulated weeks whose data is in tables of an Iceberg catalog."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.test_kills import *  # noqa: F403
from tests.faults.test_kills import pytestmark
from tests.registries import iceberg
from tests.simulation.declared import entities_in_tables

__all__ = ["pytestmark"]


@pytest.fixture(scope="module")
def declare(database: str) -> Callable[..., str]:
    """Says what is declared: both clusters have the same registry."""
    return entities_in_tables(iceberg(database))
