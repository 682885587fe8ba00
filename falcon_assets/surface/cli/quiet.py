"""Keeps what Spark, Dagster and workflows say off the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from falcon_assets.base.home import require_space

_moved: list[int] = []
"""The place of standard output, while it goes to a log."""


def private_log(file: Path) -> BinaryIO:
    """The file, emptied, for nobody's eyes but its owner's: programs may say anything."""
    file.unlink(missing_ok=True)
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@contextmanager
def output_to(file: Path) -> Iterator[TextIO]:
    """Sends what this process and the programs that it starts print to ``file``: Spark and workflows are talkative.

    Gives what still goes to the terminal. Raises SettingsError where the folder of the file cannot be made, or has no
    room.
    """
    require_space(file.parent)
    sys.stdout.flush()
    sys.stderr.flush()
    before = os.dup(1), os.dup(2)
    _moved.append(before[0])
    shown, said = _terminal(before[0]), sys.stdout
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
        os.fchmod(log.fileno(), 0o600)  # an earlier version let everybody read it
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        if shown is said:  # it is no file of the system's: print() would not go by what that says
            sys.stdout = open(log.fileno(), "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        try:
            yield shown
        finally:
            for one in (shown, sys.stdout, sys.stderr):
                one.flush()
            sys.stdout = said
            _moved.pop()
            for number, kept in enumerate(before, 1):
                os.dup2(kept, number)
                os.close(kept)


def terminal_number() -> int:
    """The number of the file that was standard output."""
    return _moved[0] if _moved else 1


def _terminal(number: int) -> TextIO:
    """Opens the terminal or file that standard output was."""
    try:
        is_file = sys.stdout.fileno() == 1
    except (OSError, ValueError):
        is_file = False
    if not is_file:
        return sys.stdout
    return open(number, "w", encoding=sys.stdout.encoding, errors="replace", buffering=1, closefd=False)
