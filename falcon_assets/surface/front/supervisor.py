"""Keeps programs running: starts them, passes on what they print, starts them again, and ends them together."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

FIRST_SECONDS, MOST_SECONDS = 1.0, 60.0
"""Before a program that ended is started again: twice as long each time, and at once after it ran for a while."""
END_SECONDS = 20.0
"""For what ends in order; then it is killed with all that it started."""
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Program:
    """A program to keep running.

    Attributes:
        name: Begins its lines.
        command: With its arguments.
        is_ready: Asked before the programs that come after it are started.
    """

    name: str
    command: Sequence[str]
    is_ready: Callable[[], bool] = lambda: True


@dataclass
class _Running:
    program: Program
    process: subprocess.Popen[str] | None = None
    began: float = 0.0
    again: float = 0.0
    wait: float = 0.0


@dataclass
class Supervisor:
    """Runs in the main thread, which gets the signals.

    Attributes:
        environ: Of all programs.
        say: Prints a line.
    """

    environ: Mapping[str, str]
    say: Callable[[str], object]
    _ended: threading.Event = field(default_factory=threading.Event)
    _saying: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, programs: Sequence[Program]) -> bool:
        """Keeps them running until this process is asked to end; returns whether all of them ended in order then."""
        kept = [_Running(one) for one in programs]
        with self._signals():
            try:
                while not self._ended.is_set():
                    self._look(kept)
                    self._ended.wait(_LOOK_SECONDS)
            finally:
                in_order = self._end(kept)
        return in_order

    def _look(self, kept: Sequence[_Running]) -> None:
        for one in kept:
            now = time.monotonic()
            if one.process is not None and (code := one.process.poll()) is not None:
                one.wait = (
                    min(one.wait * 2, MOST_SECONDS) if one.wait and now - one.began < MOST_SECONDS else FIRST_SECONDS
                )
                one.process, one.again = None, now + one.wait
                self._tell(one.program.name, f"ended ({_how(code)}); it is started again in {one.wait:g} s")
            if one.process is None and now >= one.again:
                self._start(one)
            if not one.program.is_ready():
                return

    def _start(self, one: _Running) -> None:
        process = subprocess.Popen(
            one.program.command,
            env=dict(self.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is for this process, which ends the others
        )
        one.process, one.began = process, time.monotonic()
        self._tell(one.program.name, f"is process {process.pid}")
        threading.Thread(target=self._pass_on, args=(one.program.name, process), daemon=True).start()

    def _pass_on(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._tell(name, line.rstrip("\n"))

    def _tell(self, name: str, line: str) -> None:
        with self._saying, suppress(BrokenPipeError):
            self.say(f"{name:<6} | {line}")

    def _end(self, kept: Sequence[_Running]) -> bool:
        """The last first: nothing is asked of what has ended."""
        running = [one.process for one in reversed(kept) if one.process is not None]
        for process in running:
            with suppress(ProcessLookupError):
                process.terminate()
        until, in_order = time.monotonic() + END_SECONDS, True
        for process in running:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                in_order = False
        # Runs in progress, which record that they were interrupted.
        left = [process.pid for process in running if _signalled(process.pid, signal.SIGTERM)]
        while in_order and time.monotonic() < until and (left := [one for one in left if _signalled(one, 0)]):
            time.sleep(_LOOK_SECONDS)
        for process in running:
            _signalled(process.pid, signal.SIGKILL)
            process.wait()
        return in_order

    @contextmanager
    def _signals(self) -> Iterator[None]:
        asks = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {one: signal.getsignal(one) for one in asks}
        heard = {one: handler for one, handler in before.items() if handler != signal.SIG_IGN}
        for one in heard:
            signal.signal(one, lambda *_: self._ended.set())
        try:
            yield
        finally:
            for one, handler in heard.items():
                signal.signal(one, handler)


def _signalled(group: int, number: int) -> bool:
    """Whether there was a process of the group."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def _how(code: int) -> str:
    return f"by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
