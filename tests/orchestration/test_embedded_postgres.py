"""The embedded PostgreSQL and the processes that use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.processes import environ_with
from tests.waiting import wait_until

USE = (
    "import sys; from falcon_assets.orchestration.postgres import database_url;"
    "from falcon_assets.settings import load_settings; database_url(load_settings());"
    "print('ready', flush=True); sys.stdin.readline()"
)


def test_it_stops_with_its_last_user_also_where_another_one_was_killed(tmp_path: Path) -> None:
    def use() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", USE]
        environ = environ_with(FALCON_HOME=str(tmp_path))
        user = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)
        assert user.stdout is not None
        assert user.stdout.readline() == "ready\n"
        return user

    killed, last = use(), use()
    killed.kill()
    killed.wait()
    assert (tmp_path / "postgres/postmaster.pid").exists()
    last.communicate("done\n", timeout=60)
    assert last.returncode == 0
    wait_until(lambda: not (tmp_path / "postgres/postmaster.pid").exists(), 30, "the end of the server")
