"""Keeps what Spark and Dagster say off the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def private_log(file: Path) -> BinaryIO:
    """The file, emptied, for nobody's eyes but its owner's: programs may say anything."""
    file.unlink(missing_ok=True)
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@contextmanager
def errors_to(file: Path) -> Iterator[None]:
    """Sends the standard error of this process and of the programs it starts to ``file``: Spark is talkative."""
    sys.stderr.flush()
    before = os.dup(2)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
        os.fchmod(log.fileno(), 0o600)  # an earlier version let everybody read it
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)
