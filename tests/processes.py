"""Other processes: the programs under test, what they are told, and children of the test itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Collection
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.shared_clock import home_clock
from falcon_assets.surface.cli.main import main

CHECKOUT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
"""Where the programs of this environment are."""
FALCON = str(BIN / "falcon")


def environ_with(**given: str) -> dict[str, str]:
    """This process's environment without the settings of falcon and Dagster, but with these; no webserver is asked."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FALCON_", "DAGSTER_"))}
    return kept | {"FALCON_WEBSERVER_URL": ""} | given


def falcon_here(environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """What the program does, done in this process: it starts at once, and says and returns the same."""
    command = ["falcon", *arguments]
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(StringIO()) as output,
        redirect_stderr(StringIO()) as errors,
    ):
        patch.setattr(sys, "argv", command)
        for name in os.environ.keys() - environ.keys():
            patch.delenv(name)
        for name, value in environ.items():
            patch.setenv(name, value)
        home_clock.cache_clear()
        with pytest.raises(SystemExit) as ended:
            main()
    return subprocess.CompletedProcess(command, int(ended.value.code or 0), output.getvalue(), errors.getvalue())


def free_port() -> int:
    """A TCP port on loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Whether somebody does."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def forked(work: Callable[[], object]) -> int:
    """The id of a child that does ``work``; its status is 0 unless it is killed or fails."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)  # an error must not go on as a second pytest
    return child


def killed_before(step: int, steps: Collection[str], work: Callable[[], object]) -> bool:
    """Does ``work`` in a process that kills itself just before its ``step``-th step; whether it was killed.

    A step is an audit event of one of these names: Python raises them just before the system call.
    """

    def dying() -> None:
        numbers = count(1)

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event in steps and next(numbers) == step:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        work()

    status = os.waitpid(forked(dying), 0)[1]
    assert status in (0, signal.SIGKILL), "the child failed by itself"
    return status != 0
