"""Programs that this process starts, and never leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from falcon_assets.cancellation import current_cancellation

_GRACE_SECONDS = 30
"""As Kubernetes has it: a JVM on a busy machine has been seen to need more than ten."""

_lock = threading.Lock()
_running: set[subprocess.Popen[bytes]] = set()


def run_program(command: list[str], log: Path, environ: Mapping[str, str]) -> int:
    """Runs ``command`` in ``environ`` with all its output in ``log`` and gives its exit code, negative for a signal.

    Should this thread be interrupted, or what it computes be cancelled, the program and whatever it started end first.

    Raises:
        CancelledError: it was cancelled before the program started.
    """
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environ,
            start_new_session=True,
        )
    with _lock:
        _running.add(child)
    try:
        with current_cancellation().ended_by(partial(_end, child)):
            return child.wait()
    finally:  # also when this thread is interrupted
        _end(child)
        with _lock:
            _running.discard(child)


def stop_programs() -> None:
    """Ends every program that this process has started and that still runs; their instances fail.

    For whoever is told to stop while other threads wait for programs.
    """
    with _lock:
        running = list(_running)
    for child in running:
        _end(child)


def kill_programs() -> None:
    """The same without grace, for who cannot wait."""
    for child in list(_running):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends the program and whatever it started: gently first."""
    if child.poll() is not None:
        return
    with suppress(ProcessLookupError):  # it ended just now
        os.killpg(child.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_SECONDS)
    with suppress(ProcessLookupError):  # whoever did not listen
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
