"""Workflows end an instance, and never the process that computes it beside others."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

_OWN = "falcon_assets."
_lock = threading.Lock()
_computing: list[int] = []
"""The number of this process, for each workflow that it computes just now; a forked child has that of its parent."""
_exit = os._exit


@contextmanager
def exits_refused() -> Iterator[None]:
    """In this context ``os._exit`` raises SystemExit, as ``sys.exit`` does: the process would be gone without a word.

    This package itself still can, and so can the children that a workflow forks.
    """
    with _lock:
        os._exit = _refuse
        _computing.append(os.getpid())
    try:
        yield
    finally:
        with _lock:
            _computing.pop()
            if not _computing:
                os._exit = _exit


def _refuse(status: int) -> NoReturn:
    caller = str(sys._getframe(1).f_globals.get("__name__", ""))
    if os.getpid() in _computing and not caller.startswith(_OWN):
        raise SystemExit(f"os._exit({status}) would end the run as well: return, or raise an error")
    _exit(status)
