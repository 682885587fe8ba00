"""What a shell says, and sessions do not go by."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from falcon_assets.spark.jvm.environ import jvm_starts, utf8_locale
from tests.processes import CHECKOUT, environ_with

PROGRAM = """
import os, sys
from pathlib import Path
from tests.spark.sandbox import Sandbox, cluster_on
from falcon_assets.spark.session.sessions import stop_sessions
from tests.spark.test_input_files import copied, planted

box = Sandbox(Path(sys.argv[1]), cluster_on("local[1]"))
planted(box, "in/\u00fc.json", "in/sub/a.json")
print(copied(box, "in"), os.environ.get("LC_ALL"))
stop_sessions()
"""
ELSEWHERE = {
    "SPARK_REMOTE": "sc://127.0.0.1:9",
    "SPARK_API_MODE": "connect",
    "SPARK_CONNECT_MODE_ENABLED": "1",
    "SPARK_LOCAL_REMOTE": "1",
}
"""Has PySpark go to a Connect server, whatever master it is given."""


@pytest.mark.soak
def test_a_session_is_on_its_cluster_and_finds_its_files_whatever_the_shell_says(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=CHECKOUT,
        env=environ_with(LC_ALL="C", **ELSEWHERE),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[(0,), (1,)] C\n", done.stderr


def test_this_process_keeps_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in ("C", None):
        if before is None:
            monkeypatch.delenv("LC_ALL", raising=False)
        else:
            monkeypatch.setenv("LC_ALL", before)
        with jvm_starts(lambda environ: {}):
            assert os.environ["LC_ALL"] == utf8_locale()["LC_ALL"]
        assert os.environ.get("LC_ALL") == before
