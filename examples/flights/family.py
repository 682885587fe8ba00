"""Ends a program together with everything that it started."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

import psutil

_GRACE_SECONDS = 30.0
_LAST_SECONDS = 5.0


def end_family(child: subprocess.Popen[bytes]) -> None:
    """Ends the child as Ctrl-C would, then whoever of its family is left, gently first.

    Its family are its descendants and all others in its session, which it must lead; so those that lost their parent on
    the way, too. While this goes on, which it does for 45 seconds at most, this process is not interrupted.
    """
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        family = _family(child.pid)
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_SECONDS)
        left = family | _family(child.pid)
        for one in left:
            with suppress(psutil.NoSuchProcess):
                one.terminate()
        _, deaf = psutil.wait_procs(left, timeout=_LAST_SECONDS)
        for one in deaf:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(deaf, timeout=_LAST_SECONDS)
        child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _family(leader: int) -> set[psutil.Process]:
    found = {one for one in psutil.process_iter() if _session(one.pid) == leader}
    with suppress(psutil.NoSuchProcess):
        found |= set(psutil.Process(leader).children(recursive=True))
    return found


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None
