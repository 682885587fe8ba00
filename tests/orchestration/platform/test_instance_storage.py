from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy

from falcon_assets.errors import SettingsError
from falcon_assets.history.database import upgrade
from falcon_assets.history.platform.instance_storage import FalconStorage
from falcon_assets.history.platform.postgres import unreachable
from falcon_assets.settings import Settings, load_settings
from tests.postgres_server import postgres_server
from tests.processes import environ_with
from tests.waiting import wait_until

NAME = "falcon hours(5) 2013-01-01T00:00Z 2013-01-02T00:00Z UTC"
KEYS = ["2013-01-01T00:00Z", "2013-01-01T05:00Z", "2013-01-01T10:00Z", "2013-01-01T15:00Z", "2013-01-01T20:00Z"]


def test_history_is_kept_in_postgresql(instance: dg.DagsterInstance, database: str) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization("kept", partition="a"))
    engine = sqlalchemy.create_engine(database, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        query = sqlalchemy.text("SELECT count(*) FROM event_logs WHERE asset_key = :key")
        assert connection.execute(query, {"key": '["kept"]'}).scalar() == 1


def test_connections_are_pooled_and_survive_being_cut(instance: dg.DagsterInstance, database: str) -> None:
    instance.get_materialized_partitions(dg.AssetKey("kept"))
    engine = sqlalchemy.create_engine(database, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        cut = sqlalchemy.text(f"SELECT pg_terminate_backend(pid) {others}")
        assert len(connection.execute(cut).all()) >= 1
    assert instance.get_materialized_partitions(dg.AssetKey("kept")) is not None


def test_who_is_disposed_of_leaves_no_connection(database: str) -> None:
    """As instances are: a code server opens and disposes of one for every tick."""
    engine = sqlalchemy.create_engine(database, poolclass=sqlalchemy.NullPool)
    query = sqlalchemy.text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")

    def connections() -> int:
        with engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    before = connections()
    opened = [FalconStorage(database) for _ in range(5)]
    assert connections() >= before + 5
    for storage in opened:
        assert storage.run_storage.get_runs_count() >= 0
        storage.run_storage.dispose()
        storage.event_log_storage.dispose()
    wait_until(lambda: connections() <= before, 10, "the end of their connections")


def test_a_user_of_the_name_of_our_schema(tmp_path: Path) -> None:
    """PostgreSQL looks first into the schema of the user's name: two tables ``alembic_version`` would be one."""
    with postgres_server(tmp_path / "own") as server:
        server.sql("CREATE ROLE falcon LOGIN")
        server.sql('CREATE DATABASE "of falcon" OWNER falcon')
        server.sql("""ALTER DATABASE "of falcon" SET search_path = "$user", public, "o'brien's 100%" """)
        url = sqlalchemy.make_url(server.url).set(username="falcon", database="of falcon")
        engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
        upgrade(engine)
        for _ in range(2):
            storage = FalconStorage(url.render_as_string(hide_password=False), clock=load_settings().clock)
            storage.run_storage.optimize_for_webserver(15_000, 3_600, 20)
            assert (storage.run_storage.alembic_version() or ("",))[0] != ours(engine)
            assert storage.run_storage.get_runs_count() == 0
            storage.dispose()
        assert sqlalchemy.inspect(engine).has_table("runs", "public")
        assert not sqlalchemy.inspect(engine).has_table("runs", "falcon")


def ours(engine: sqlalchemy.Engine) -> str:
    with engine.connect() as connection:
        return str(connection.exec_driver_sql("SELECT version_num FROM falcon.alembic_version").scalar_one())


def test_an_instance_is_opened_with_one_connection(database: str) -> None:
    FalconStorage(database).dispose()  # there are tables now, whoever comes first
    opened: list[object] = []

    def connect(_connection: object, record: object) -> None:
        opened.append(record)

    sqlalchemy.event.listen(sqlalchemy.pool.Pool, "connect", connect)
    try:
        FalconStorage(database).dispose()
    finally:
        sqlalchemy.event.remove(sqlalchemy.pool.Pool, "connect", connect)
    assert len(opened) == 1


def test_keys_of_our_dynamic_partitions_are_computed(instance: dg.DagsterInstance) -> None:
    assert list(instance.get_dynamic_partitions(NAME)) == KEYS
    assert instance.has_dynamic_partition(NAME, "2013-01-01T05:00Z")
    assert not instance.has_dynamic_partition(NAME, "2013-01-01T06:00Z")
    assert not instance.has_dynamic_partition(NAME, "anything")
    storage = instance.event_log_storage
    assert storage.get_existing_dynamic_partitions(NAME, ["x", *KEYS[:2]]) == set(KEYS[:2])


def test_an_unreachable_database_is_one_sentence_without_the_password() -> None:
    with pytest.raises(SettingsError) as caught:
        FalconStorage("postgresql+psycopg2://falcon:secret@127.0.0.1:1/none")
    text = str(caught.value)
    assert text.startswith("the database postgresql+psycopg2://falcon:*****@127.0.0.1:1/none cannot be reached: ")
    assert "secret" not in text
    assert "\n" not in text


@pytest.mark.soak
def test_an_embedded_server_serves_several_processes(tmp_path: Path) -> None:
    """Two processes at once, each with its own handle; the server outlives the first to go."""
    program = (
        "import sys; from falcon_assets.history.platform.open_instance import open_instance;"
        "from falcon_assets.settings import load_settings; import dagster as dg;"
        "i = open_instance(load_settings());"
        "i.report_runless_asset_event(dg.AssetMaterialization('both', partition=sys.argv[1]));"
        "print('ready', flush=True); sys.stdin.readline();"
        "print(sorted(i.get_materialized_partitions(dg.AssetKey('both'))))"
    )
    environ = environ_with(FALCON_HOME=str(tmp_path))

    def start(partition: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", program, partition],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ, cwd=tmp_path,
        )  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    one, two = start("one"), start("two")
    assert one.communicate("\n", timeout=60)[0] == "['one', 'two']\n"
    assert two.communicate("\n", timeout=60)[0] == "['one', 'two']\n"
    assert not (tmp_path / "postgres" / "postmaster.pid").exists()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("postgresql://u:p@h/d", "postgresql+psycopg2://u:p@h/d"),
        ("postgres://u:p@h/d", "postgresql+psycopg2://u:p@h/d"),
        ("postgresql+psycopg2://u:p@h/d", "postgresql+psycopg2://u:p@h/d"),
    ],
)
def test_the_driver_of_the_database_url_is_named(given: str, expected: str) -> None:
    settings: Settings = load_settings({"FALCON_DATABASE_URL": given})
    assert settings.database_url == expected
    assert "p@h" not in repr(settings)


def test_another_database_than_postgresql_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^FALCON_DATABASE_URL must be a PostgreSQL URL: postgresql://user:"):
        load_settings({"FALCON_DATABASE_URL": "mysql://root@h/d"})


def test_a_full_disk_of_the_database_is_no_question_of_reaching_it(database: str) -> None:
    full = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file \"base/5/1\"' USING ERRCODE = '53100'; END $$"
    engine = sqlalchemy.create_engine(database, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection, pytest.raises(sqlalchemy.exc.OperationalError) as raised:
        connection.execute(sqlalchemy.text(full))
    said = str(unreachable(database, raised.value))
    assert said.startswith("the disk of the database postgresql+psycopg2://")
    assert said.endswith(' is full: could not extend file "base/5/1"; free some space')
