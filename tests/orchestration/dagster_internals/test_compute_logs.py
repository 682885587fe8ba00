"""Which files Dagster writes what runs print into."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from falcon_assets.history.dagster_internals.compute_logs import LocalLogs

STEP = ["run", "compute_logs", "step"]
CAPTURES = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_DFL)  # where tests run in the background, Dagster could not end what it starts
from tests.orchestration.dagster_internals.test_compute_logs import Prepared, STEP
logs = Prepared.from_config_value(None, {"base_dir": sys.argv[1]})
with logs.capture_logs(STEP):
    os.system("echo captured; echo wrong >&2")
print(*sorted(str(file) for file in logs.prepared))
"""


class Prepared(LocalLogs):
    """Remembers what it was to prepare."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.prepared: set[Path] = set()

    def prepare(self, file: Path) -> None:
        self.prepared.add(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)


def written(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.read_bytes())


def test_what_is_captured_is_in_files_that_were_prepared(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", CAPTURES, str(tmp_path)], capture_output=True, text=True, check=True)
    prepared = sorted(map(Path, done.stdout.splitlines()[-1].split()))
    assert written(tmp_path) == prepared, (
        "Dagster captures what runs print in other files than LocalLogs prepares: others could read it"
    )
    assert {file.stat().st_mode & 0o777 for file in prepared} == {0o600}, (
        "Dagster replaces the files that LocalLogs prepares: others could read what runs print"
    )


def test_what_others_write_is_in_a_file_that_was_prepared(tmp_path: Path) -> None:
    from dagster._core.storage.compute_log_manager import ComputeIOType

    logs = Prepared.from_config_value(None, {"base_dir": str(tmp_path)})
    for kind in ComputeIOType:
        with logs.open_log_stream(STEP, kind) as stream:
            assert stream is not None
            stream.write(kind.value)
    assert written(tmp_path) == sorted(logs.prepared), (
        "Dagster opens other files than LocalLogs prepares for its kinds of output: "
        f"{', '.join(kind.value for kind in ComputeIOType)}"
    )
