"""What the benchmarks compare is the same on both sides; they say so before they measure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.entities import FEEDS, PROCESSES, write_entities
from benchmarks.load import require_the_same


@pytest.mark.soak
def test_the_location_that_is_written_by_hand_has_the_same_assets(tmp_path: Path) -> None:
    write_entities(tmp_path / "entities", FEEDS, PROCESSES)
    require_the_same(
        {**os.environ, "FALCON_HOME": str(tmp_path / "home"), "FALCON_ENTITY_DEFS": str(tmp_path / "entities")}
    )
