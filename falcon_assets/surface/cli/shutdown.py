"""Ends a process in time when it is asked to end; what waits for a silent backend is left where it is."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from falcon_assets.surface.cli.quiet import terminal_number

GRACE_SECONDS = 8.0
"""For what is finished in order: the record of what was done, sessions of Spark, the embedded database."""
CLEAN_UP_SECONDS = 1.5
"""For what is done instead, where that was not in time."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


CLEAN_UPS: list[Callable[[], object]] = []
"""Work of a command that computes in this process, before the process is ended."""


def end_in_time(code: int) -> None:
    """Where this process has run workflows, its end does not wait for what they have left running in it."""
    if CLEAN_UPS:
        from falcon_assets.history.platform.process_end import ends_soon  # noqa: PLC0415 - it is loaded then

        ends_soon(code, CLEAN_UPS[0])


@contextmanager
def ends_in_time(last_words: str, clean_up: Callable[[], object]) -> Iterator[None]:
    """Within the block, a signal that asks this process to end is an interruption, and its end after some seconds.

    The main thread may be deaf, in a call into a library, and other threads wait for what never comes: Python would
    wait for them at its exit. So this process ends itself, as if it was killed; the next run repairs what that leaves.
    What this process was started to ignore, it ignores: Ctrl-C where a script started it with ``&``, the end of the
    terminal after ``nohup``.

    Args:
        last_words: Said then, on standard output.
        clean_up: Is called then, and given little time.
    """

    def interrupt(number: int, _: object) -> None:
        raise KeyboardInterrupt

    CLEAN_UPS.append(clean_up)
    before = {number: signal.getsignal(number) for number in _ENDING}
    before = {number: handler for number, handler in before.items() if handler != signal.SIG_IGN}
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    over, asked = threading.Event(), threading.Event()

    def watch() -> None:
        while number := ours.recv(1):
            if number[0] in before:
                asked.set()
                if not over.wait(GRACE_SECONDS):
                    _end_now(128 + number[0], last_words, clean_up)

    for number in before:
        signal.signal(number, interrupt)
    # The handler in C writes to it, so also while no line of Python is executed in the main thread.
    old = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=watch, name="ends in time", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)
        if not asked.is_set():  # else the way out has to be in time too
            over.set()
            ours.shutdown(socket.SHUT_RDWR)


def _end_now(code: int, last_words: str, clean_up: Callable[[], object]) -> None:
    cleaning = threading.Thread(target=clean_up, daemon=True)
    cleaning.start()
    cleaning.join(CLEAN_UP_SECONDS)
    with suppress(OSError):
        number = terminal_number()
        cursor = "\r\x1b[?25h" if os.isatty(number) else ""  # a progress display has hidden it
        os.write(number, f"{cursor}{last_words}\n".encode())
    os._exit(code)
