"""Everything of an installation is opened when it is asked for, and once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import dagster as dg
import pytest

from falcon_assets.errors import SettingsError
from falcon_assets.history.dagster_internals.tables import newest_event
from falcon_assets.history.overview import folded_up_to
from falcon_assets.operations.installation import open_installation
from tests.operations.opening import OpenAt
from tests.processes import environ_with

CLUSTER = """
kind: cluster
name: {name}
colo: {name}
interfaces: {{write: {{endpoint: data}}, execute: {{endpoint: "local[1]"}}}}
"""


@pytest.fixture(scope="module", autouse=True)
def entities(write_entities: Callable[[dict[str, str]], Path]) -> None:
    write_entities({f"{name}.yaml": CLUSTER.format(name=name) for name in ("east", "west")})


def test_everything_is_opened_once(open_at: OpenAt) -> None:
    with open_at("2013-01-01T00:00Z") as installation:
        assert installation.ledger is installation.ledger
        assert installation.ledger.instance is installation.instance
        assert installation.entities is installation.entities


def test_entities_are_those_of_the_colo(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_installation() as both:
        assert list(both.entities.clusters) == ["east", "west"]
    monkeypatch.setenv("FALCON_COLO", "west")
    with open_installation() as one:
        assert list(one.entities.clusters) == ["west"]


def test_entities_need_neither_dagster_nor_a_database(tmp_path: Path) -> None:
    (tmp_path / "east.yaml").write_text(CLUSTER.format(name="east"))
    program = (
        "import sys\n"
        "from falcon_assets.operations.installation import open_installation\n"
        "with open_installation() as installation: print(*installation.entities.clusters)\n"
        "print(sorted({'dagster', 'pyspark', 'sqlalchemy'} & sys.modules.keys()))"
    )
    environ = environ_with(
        FALCON_HOME=str(tmp_path / "home"),
        FALCON_ENTITY_DEFS=str(tmp_path),
        FALCON_DATABASE_URL="postgresql://nobody@127.0.0.1:9/none",
    )
    said = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert said.stdout == "east\n[]\n"
    assert not (tmp_path / "home").exists()


def test_dagster_is_opened_where_its_history_is_not_in_the_ledger_yet(open_at: OpenAt) -> None:
    def opens() -> bool:
        with open_at("2013-01-01T00:00Z") as installation:
            with installation.tables_caught_up().connect() as connection:
                assert folded_up_to(connection) == newest_event(connection)
            return "instance" in vars(installation)

    opens()  # it is perhaps the first one here
    assert not opens()
    with open_at("2013-01-01T00:00Z") as other:
        other.instance.report_runless_asset_event(dg.AssetMaterialization("theirs"))
    assert opens()
    assert not opens()


def test_another_clock_than_that_of_the_database_is_refused(open_at: OpenAt) -> None:
    with open_at("2013-01-01T00:00Z@60x") as running:
        running.set_clock(anew=False)
    with open_at("2012-01-01T00:00Z") as still:
        with pytest.raises(SettingsError, match="uses another clock"):
            still.set_clock(anew=False)
        with pytest.raises(SettingsError, match="uses another clock"):
            still.tables_caught_up()
        still.set_clock(anew=True)


def test_who_holds_a_connection_gets_another_however_many_do(open_at: OpenAt) -> None:
    """As ticks of coordinators, each of which holds the lock of its pipeline; they failed after half a minute."""
    holders, seconds = 16, 20.0
    with open_at("2013-01-01T00:00Z") as installation:
        engine, all_hold = installation.ledger.engine, Barrier(holders, timeout=seconds)

        def tick() -> None:
            with engine.connect() as held:
                held.exec_driver_sql("SELECT 1")
                all_hold.wait()
                with engine.connect() as other:
                    other.exec_driver_sql("SELECT 1")

        with ThreadPoolExecutor(holders) as threads:
            for done in [threads.submit(tick) for _ in range(holders)]:
                done.result(seconds)
