"""The ledger and its connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import dagster as dg
import pytest
import sqlalchemy
import yaml

from falcon_assets.errors import SettingsError
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.history.platform.open_ledger import Ledger, is_folded, open_ledger
from falcon_assets.history.platform.postgres import in_utc
from falcon_assets.settings import Settings, load_settings
from tests.processes import CHECKOUT


@pytest.fixture
def narrow(settings: Settings, instance: dg.DagsterInstance) -> Iterator[Ledger]:
    """A ledger that has one connection and no more."""
    url = open_ledger(settings, instance).engine.url
    engine = sqlalchemy.create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.1)
    yield Ledger(engine, instance)
    engine.dispose()


def test_who_brings_the_ledger_up_to_date_needs_one_connection(narrow: Ledger) -> None:
    """Others may have the rest, all of whom wait for the lock that it holds meanwhile."""
    narrow.instance.report_runless_asset_event(
        dg.AssetMaterialization(["primary", "raw"], partition="2013-01-01-00:00")
    )
    narrow.catch_up()
    assert narrow.behind(0) == 1
    narrow.rebuild()


def happen(ledger: Ledger) -> None:
    """Something of which the ledger has to know."""
    ledger.instance.report_runless_asset_event(dg.AssetMaterialization(["primary", "raw"], partition="2013-01-01"))


@pytest.fixture
def behind(settings: Settings, instance: dg.DagsterInstance) -> Ledger:
    """A ledger that has to be folded."""
    ledger = open_ledger(settings, instance)
    happen(ledger)
    return ledger


def test_what_says_nothing_of_instances_needs_no_folding(behind: Ledger) -> None:
    behind.catch_up()
    behind.instance.report_engine_event("the daemon says something", job_name="any", run_id="none")
    assert is_folded(behind.engine)
    happen(behind)
    assert not is_folded(behind.engine)


@pytest.mark.parametrize(
    ("seen", "folds", "is_waited"),
    [
        pytest.param("1 second", True, True, id="the daemon folds"),
        pytest.param("1 second", False, False, id="it does not come to it"),
        pytest.param("1 hour", True, False, id="it died an hour ago"),
    ],
)
def test_while_sensors_tick_they_are_waited_for(behind: Ledger, seen: str, folds: bool, is_waited: bool) -> None:
    sign = f"""DELETE FROM daemon_heartbeats;
        INSERT INTO daemon_heartbeats (daemon_type, daemon_id, timestamp, body)
        VALUES ('SENSOR', 'here', now() AT TIME ZONE 'UTC' - interval '{seen}', '')"""
    with behind.engine.begin() as connection:
        connection.execute(sqlalchemy.text(sign))
    folding = threading.Timer(0.2, behind.catch_up)
    if folds:
        folding.start()
    assert is_folded(behind.engine) == is_waited
    if folds:
        folding.join()
        assert is_folded(behind.engine)


def test_a_database_without_dagsters_tables_is_not_folded(behind: Ledger) -> None:
    """So Dagster is opened, whose error says where its history is instead."""
    elsewhere = sqlalchemy.create_engine(behind.engine.url, connect_args={"options": "-c search_path=falcon"})
    assert not is_folded(elsewhere)
    elsewhere.dispose()


def test_a_history_that_the_ledger_cannot_follow_is_said_to_be_that(settings: Settings) -> None:
    with dg.DagsterInstance.local_temp() as sqlite, pytest.raises(SettingsError, match="not on PostgreSQL") as said:
        open_ledger(settings, sqlite).catch_up()
    declared = yaml.safe_load(str(said.value).partition("\n")[2])
    assert declared == {"storage": yaml.safe_load((CHECKOUT / "dagster.yaml").read_text())["storage"]}


def test_the_ledger_goes_where_the_url_says_that_dagsters_tables_are(
    settings: Settings, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = sqlalchemy.create_engine(database)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE SCHEMA orchestration"))
    there = sqlalchemy.make_url(database).update_query_dict({"options": "-csearch_path=orchestration"})
    monkeypatch.setenv("FALCON_DATABASE_URL", there.render_as_string(hide_password=False))
    elsewhere = load_settings()
    with open_instance(elsewhere) as instance:
        for hour in ("00", "01", "02"):
            made = dg.AssetMaterialization(["primary", "raw"], partition=f"2013-01-01-{hour}:00")
            instance.report_runless_asset_event(made)
        assert open_ledger(elsewhere, instance).behind(0) == 3
    engine.dispose()


def test_what_the_shell_says_of_sessions_is_kept(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c lock_timeout=7s")
    plain = sqlalchemy.make_url(database).difference_update_query(["options"])
    url = plain.render_as_string(hide_password=False)
    with sqlalchemy.create_engine(url, connect_args=in_utc(url)).connect() as connection:
        told = [connection.execute(sqlalchemy.text(f"SHOW {one}")).scalar_one() for one in ("lock_timeout", "timezone")]
    assert told == ["7s", "UTC"]
