"""JVMs whose start by PySpark was interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
from pyspark import SparkContext

_SHELL = "pyspark-shell"
_KILL_SECONDS = 10


@contextmanager
def ended_with_its_start() -> Iterator[None]:
    """Ends the JVM that the block was starting, if the block is left before PySpark has a handle of it.

    PySpark removes the folder in which such a JVM reports its port, and forgets it; the JVM would stay for ever.
    Only one start at a time in a process.
    """
    before = set(_jvms())
    try:
        yield
    except BaseException:
        if SparkContext._gateway is None:
            for orphan in set(_jvms()) - before:
                with suppress(psutil.Error):
                    orphan.kill()
                    orphan.wait(_KILL_SECONDS)
        raise


def _jvms() -> Iterator[psutil.Process]:
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if _SHELL in child.cmdline():
                yield child
