"""Runs programs, and extracts the reason of a failure from their logs of hundreds of lines."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.compute.spark.failures import python_failure

_LINES = 5
_WIDTH = 500
_TRACEBACK = "Traceback (most recent call last):"
_MAIN = re.compile(r'^Exception in thread "[^"]*" (.*)')
_CAUSE = re.compile(r"^Caused by: (.*)")
_THROWN = re.compile(r"^(?:[a-z_$][\w$]*\.)+[A-Z][\w$]*(?:: |$)")
_NOISE = re.compile(
    r"\s*$|\d\d/\d\d/\d\d \d\d:\d\d:\d\d |\s+at |\s+\.\.\. \d+ more|\s*[~^]+\s*$|SQLSTATE: "
    r"|WARNING: |NOTE: Picked up|Picked up |Using Spark's |Setting (?:Spark|default) log level|To adjust logging level"
)


def cause_in(log: str) -> list[str]:
    """Returns the lines of a failed program's log that have the reason, five at most; none: there is no such line.

    These are the last exception of Python or of the JVM, with its innermost cause; else the program's last own lines.
    """
    lines = log.splitlines()
    said: list[str] = []
    last = max((at for at, line in enumerate(lines) if line == _TRACEBACK), default=None)
    if last is not None:
        end = next((at for at in range(last + 1, len(lines)) if lines[at] and not lines[at][0].isspace()), None)
        if end is not None:
            said.append(python_failure("\n".join(lines[last : end + 1])))
            lines = lines[end + 1 :]
    elif (main := max((at for at, line in enumerate(lines) if _MAIN.match(line)), default=None)) is not None:
        said += [match[1] for match in [_MAIN.match(lines[main]), *_causes(lines[main:])] if match]
        return [line[:_WIDTH] for line in said]
    own = [line for line in lines if not _NOISE.match(line) and not (said and _is_thrown(line))]
    return [line[:_WIDTH] for line in [*said, *own[-1 if said else -_LINES :]]]


def _causes(lines: list[str]) -> list[re.Match[str]]:
    return [match for match in map(_CAUSE.match, lines) if match][-1:]


def _is_thrown(line: str) -> bool:
    return bool(
        line[0].isspace() or _CAUSE.match(line) or _THROWN.match(line) or re.match(r"\w+(Error|Exception)\b", line)
    )


_GRACE_SECONDS = 30
"""As in Kubernetes: a JVM on a busy machine may need more than ten."""

_lock = threading.Lock()
_running: set[subprocess.Popen[bytes]] = set()


def run_program(command: list[str], log: Path, environ: Mapping[str, str]) -> int:
    """Runs a program with all its output in ``log``; returns its exit code, negative for a signal.

    If this thread is interrupted, or its computation cancelled, the program and its children are ended first. Raises
    CancelledError if it was cancelled before.
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
    """Ends all running programs of this process, while other threads wait for them; their instances fail."""
    with _lock:
        running = list(_running)
    for child in running:
        _end(child)


def kill_programs() -> None:
    """As :func:`stop_programs`, by SIGKILL at once."""
    for child in list(_running):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is not None:
        return
    with suppress(ProcessLookupError):  # it ended just now
        os.killpg(child.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_SECONDS)
    with suppress(ProcessLookupError):  # whoever did not listen
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
