"""When the running clock of this installation was started: the same for all its processes, kept in a file."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path

from filelock import FileLock

from falcon_assets.errors import SettingsError

FILE = "clock.json"
"""In FALCON_HOME; whoever removes it starts the clock anew, for the processes that start afterwards."""
_PATIENCE = 30


def start_anew(home: Path) -> None:
    """Lets the next process that asks start the clock; those that asked before go by the old start."""
    (home / FILE).unlink(missing_ok=True)


@lru_cache(maxsize=8)
def shared_start(home: Path, text: str) -> datetime:
    """Real time at which the clock ``text`` was started here: now, where no process has started it before.

    A process keeps what it was told first, so that its clock never jumps.

    Args:
        home: FALCON_HOME; made if it is not there.
        text: FALCON_CLOCK. Another text than last time is another clock, and starts now.

    Raises:
        SettingsError: the file can neither be read nor written.
    """
    file = home / FILE
    try:
        started = _read(file, text)
        if started is None:
            home.mkdir(parents=True, exist_ok=True)
            # Replacing an old file is reading and writing: without a lock, two processes could each write their own.
            with FileLock(home / f"{FILE}.lock", timeout=_PATIENCE):
                started = _read(file, text) or _write(file, text)
    except OSError as error:
        raise SettingsError(
            f"FALCON_CLOCK: the start of {text} cannot be kept in {file}: {error.strerror or error}; "
            "make FALCON_HOME writable"
        ) from error
    return started


def _read(file: Path, text: str) -> datetime | None:
    """The start that the file knows; None where it is not there, is damaged or is about another clock."""
    try:
        noted = json.loads(file.read_text())
        started = datetime.fromisoformat(noted["started"])
        return started if noted["clock"] == text and started.tzinfo else None
    except (FileNotFoundError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _write(file: Path, text: str) -> datetime:
    started = datetime.now(timezone.utc)
    new = file.with_name(f"{FILE}.new")  # only the holder of the lock writes it
    new.write_text(json.dumps({"clock": text, "started": started.isoformat()}) + "\n")
    new.replace(file)
    return started
