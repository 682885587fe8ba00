from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from tests.processes import FALCON, environ_with, free_port


def falcon_spark(*arguments: str, home: Path) -> tuple[int, str, str]:
    env = environ_with(FALCON_HOME=str(home))
    done = subprocess.run([FALCON, "spark", *arguments], env=env, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_nothing_runs(tmp_path: Path) -> None:
    assert falcon_spark("status", home=tmp_path) == (3, "the Spark Connect server does not run\n", "")
    assert falcon_spark("stop", home=tmp_path) == (0, "the Spark Connect server does not run\n", "")
    assert list(tmp_path.iterdir()) == []


def test_an_occupied_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = falcon_spark("start", "--port", str(port), home=tmp_path)
    assert said == (
        1,
        "",
        f"Error: port {port} on 127.0.0.1 cannot be used (Address already in use): stop what listens there, "
        "or choose another one with --port\n",
    )


def test_a_home_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, said = falcon_spark("start", home=tmp_path / "file" / "home")
    assert (code, said) == (1, f"Error: {tmp_path}/file/home/spark cannot be used: Not a directory\n")


@pytest.mark.soak
def test_a_server_from_start_to_stop(tmp_path: Path) -> None:
    port = free_port()
    try:
        code, said, _ = falcon_spark("start", "--port", str(port), home=tmp_path)
        assert code == 0
        assert said.startswith(f"the Spark Connect server runs at sc://127.0.0.1:{port} (process ")
        where = said.removeprefix("the Spark Connect server runs ")
        assert falcon_spark("start", "--port", str(port), home=tmp_path) == (
            0,
            f"the Spark Connect server runs already {where}",
            "",
        )
        assert falcon_spark("status", home=tmp_path) == (
            0,
            f"the Spark Connect server runs {where.strip()}; its log is {tmp_path}/spark/server.log\n",
            "",
        )
    finally:
        assert falcon_spark("stop", home=tmp_path) == (0, "the Spark Connect server is stopped\n", "")
    assert falcon_spark("status", home=tmp_path)[0] == 3
