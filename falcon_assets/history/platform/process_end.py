"""The end of a process that has run workflows, even if these left threads running in it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

THREAD_SECONDS = 5.0
EXIT_SECONDS = 60.0
"""Time limit for exit handlers: they end JVMs and the embedded database."""
_CLEAN_UP_SECONDS = 20.0


def ends_soon(code: int, clean_up: Callable[[], object]) -> None:
    """Lets this process end as Python does, and ends it by force if that takes too long, printing the reason.

    Python waits for all threads but daemons, and then calls the exit handlers. ``clean_up`` is called before an end by
    force.
    """
    threading.Thread(target=_watch, args=(code, clean_up), name="ends soon", daemon=True).start()


def left_threads() -> list[str]:
    main = threading.main_thread()
    return [one.name for one in threading.enumerate() if one is not main and not one.daemon and one.is_alive()]


def _watch(code: int, clean_up: Callable[[], object]) -> None:
    waited = threading.Event()
    waited.wait(THREAD_SECONDS)
    left = left_threads()
    if not left:
        waited.wait(EXIT_SECONDS)
    why = f"threads that it started ({', '.join(left)})" if left else "what it registered for the exit (atexit)"
    cleaning = threading.Thread(target=clean_up, daemon=True)
    cleaning.start()
    cleaning.join(_CLEAN_UP_SECONDS)
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        os.write(2, f"A workflow has left something running: {why}; it was ended with this process.\n".encode())
    os._exit(code)
