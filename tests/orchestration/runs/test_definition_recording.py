"""The first tick of a load records the definitions; the ticks after it ask nothing about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import Engine, delete

from falcon_assets.catalog.store import load_entities
from falcon_assets.entities.definition_versions import definition_history
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.history.tables import DEFINITION_TREES, DEFINITION_VERSIONS
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.features.entities.trees import BACKUP, DELAYS, HOURLY, PRIMARY, RAW
from tests.hours import hour
from tests.ledger.test_queries import count_statements

Loads = Callable[[], Callable[[str], None]]


@pytest.fixture
def root(write_entities: Callable[[dict[str, str]], Path]) -> Path:
    parts = {"a.yaml": PRIMARY, "b.yaml": BACKUP, "c.yaml": RAW, "d.yaml": DELAYS, "e.yaml": HOURLY}
    return write_entities({**parts, "hourly.sql": "SELECT 1"})


@pytest.fixture
def load(root: Path, settings: Settings, instance: dg.DagsterInstance) -> Loads:
    """Loads the code location, and gives what ticks one of its sensors."""

    def loaded() -> Callable[[str], None]:
        still = replace(settings, clock=Clock(origin=hour(0)), user="ann")
        repository = definitions_of(load_entities(root), still).get_repository_def()

        def tick(sensor: str) -> None:
            with dg.build_sensor_context(instance=instance, repository_def=repository) as context:
                repository.get_sensor_def(sensor).evaluate_tick(context)

        return tick

    return loaded


@pytest.fixture
def engine(settings: Settings, instance: dg.DagsterInstance) -> Engine:
    """Of the ledger that the sensors open; nothing is recorded yet."""
    opened = open_ledger(replace(settings, clock=Clock(origin=hour(0))), instance).engine
    with opened.begin() as connection:
        connection.execute(delete(DEFINITION_VERSIONS))
        connection.execute(delete(DEFINITION_TREES))
    return opened


def recorded(engine: Engine) -> list[tuple[int, str, str]]:
    with engine.connect() as connection:
        return [(one.version, one.operation, one.actor) for one in definition_history(connection, "feed", "raw")]


def test_each_load_records_what_is_new_and_its_further_ticks_ask_nothing(
    engine: Engine, root: Path, load: Loads
) -> None:
    tick = load()
    assert recorded(engine) == []
    tick("primary__collector")
    assert recorded(engine) == [(1, "load", "ann")]
    text = (root / "c.yaml").read_text()
    (root / "c.yaml").write_text(text.replace("days(90)", "days(80)"))
    statements = count_statements(engine)
    tick("primary__collector")
    tick("default__coordinator")
    assert [one for one in statements if "definition_" in one] == []
    tick = load()
    tick("default__coordinator")
    assert recorded(engine) == [(1, "load", "ann"), (2, "load", "ann")]
    statements.clear()
    load()("default__coordinator")
    assert len([one for one in statements if "definition_" in one]) == 1


def test_a_tree_that_was_broken_since_it_was_loaded_is_recorded_when_it_is_mended(
    engine: Engine, root: Path, load: Loads
) -> None:
    text = (root / "c.yaml").read_text()
    (root / "c.yaml").write_text(text + "description: new\n")
    tick = load()
    (root / "c.yaml").write_text(text + "colour: red\n")
    tick("primary__collector")
    assert recorded(engine) == []
    (root / "c.yaml").write_text(text + "description: new\n")
    tick("primary__collector")
    assert recorded(engine) == [(1, "load", "ann")]
