"""Programs that do not end by themselves."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil


@contextmanager
def running(log: Path, *command: str, **options: Any) -> Iterator[None]:
    """A program in a session of its own, ended together with all that it started."""
    with log.open("wb") as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, **options)
    try:
        yield
    finally:
        family = psutil.Process(child.pid).children(recursive=True)
        os.killpg(child.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(15)
        psutil.wait_procs(family, timeout=5)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=5)
        child.wait(5)
