"""Waiting for what other processes and threads do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], seconds: float = 60, what: Callable[[], object] | str = "it") -> T:
    """Asks again and again until there is something true, and gives it; fails after so many seconds.

    Args:
        condition: May raise, which fails at once: where what is waited for cannot come any more.
        seconds: How long at most.
        what: What is waited for, for the failure; a function is asked then.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not there after {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.05)  # nobody tells us, so we ask; seldom enough to leave the processor to those we wait for
    return found
