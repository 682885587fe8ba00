"""A real MariaDB of Debian, in a folder and on a port of its own."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.processes import free_port
from tests.waiting import wait_until

SERVER, INSTALL = Path("/usr/sbin/mariadbd"), Path("/usr/bin/mariadb-install-db")
_FAST = (
    *("--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF", "--innodb-buffer-pool-size=16M"),
    *("--innodb-log-file-size=8M", "--sync-binlog=0", "--skip-log-bin", "--skip-name-resolve"),
)
"""Nothing of it outlives a crash of the machine."""


@dataclass
class MariaDb:
    """A server that tests may kill and start again; ``root`` needs no password."""

    folder: Path
    port: int = field(default_factory=free_port)
    options: tuple[str, ...] = ()
    running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it answers; the first time it makes its tables of users."""
        data, log = self.folder / "data", self.folder / "log"
        own = ["--no-defaults", f"--datadir={data}", "--user=root"]
        with log.open("ab") as out:
            if not data.is_dir():
                words = [INSTALL, *own, "--auth-root-authentication-method=normal", "--skip-test-db", *_FAST]
                subprocess.run(words, check=True, stdout=out, stderr=out)
            place = [f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.folder / 's'}"]
            place += [f"--pid-file={self.folder / 'pid'}"]
            self.running = subprocess.Popen([SERVER, *own, *place, *_FAST, *self.options], stdout=out, stderr=out)
        wait_until(self._answers, 60, what=str(log))

    def kill(self) -> None:
        if self.running is not None:
            self.running.send_signal(signal.SIGKILL)
            self.running.wait()
            self.running = None

    @contextmanager
    def cursor(self, database: str | None = None) -> Iterator[Any]:
        """A cursor of ``root``, which commits each statement."""
        import pymysql

        made = pymysql.connect(host="127.0.0.1", port=self.port, user="root", database=database, autocommit=True)
        with closing(made) as connection, connection.cursor() as cursor:
            yield cursor

    def _answers(self) -> bool:
        import pymysql

        try:
            with self.cursor():
                return True
        except pymysql.MySQLError:
            return False


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    """One server for all tests of a worker: each makes databases of its own."""
    server = MariaDb(tmp_path_factory.mktemp("mariadb"))
    try:
        server.start()
        yield server
    finally:
        server.kill()
