"""A process that has run workflows ends, whatever they have left running in it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

THREAD_SECONDS = 5.0
"""How long threads that workflows left running are waited for."""
EXIT_SECONDS = 60.0
"""How long what is registered for the exit may take: JVMs end there, and the embedded database."""
_CLEAN_UP_SECONDS = 20.0


def ends_soon(code: int, clean_up: Callable[[], object]) -> None:
    """Lets this process end by itself, as Python does, and ends it where that takes too long, saying why.

    Python waits for every thread that is no daemon, and then does what is registered for the exit.

    Args:
        code: The exit code.
        clean_up: Is called before, where the process does not end by itself.
    """
    threading.Thread(target=_watch, args=(code, clean_up), name="ends soon", daemon=True).start()


def left_threads() -> list[str]:
    """The names of the threads for which Python waits at its exit."""
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
