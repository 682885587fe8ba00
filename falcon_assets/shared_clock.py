"""The clock of this installation: when it was started, and which one it is, the same for all processes; in a file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from falcon_assets.base.file_locks import locked
from falcon_assets.errors import ExpressionError, LockedError, SettingsError
from falcon_assets.planning.clock import Clock

FILE = "clock.json"
"""In FALCON_HOME; deleting it starts the clock anew, for processes that start afterwards."""
_PATIENCE = 30.0
_DOING = "notes the clock of this FALCON_HOME"


def start_anew(home: Path) -> None:
    """Lets the next process start the clock; running ones keep the old start."""
    (home / FILE).unlink(missing_ok=True)


@lru_cache(maxsize=8)
def home_clock(home: Path, database: str) -> Clock | None:
    """Returns the simulated clock of the database, as far as this home knows; each process caches the first answer.

    ``database`` is as in :func:`keep_clock`.
    """
    try:
        noted = _noted(home / FILE)
        return Clock.from_tag(noted["tag"]) if noted.get("database") == database else None
    except (OSError, KeyError, TypeError, ExpressionError):  # a home that cannot be used is said where it is used
        return None


def keep_clock(home: Path, clock: Clock, database: str) -> None:
    """Records the simulated clock of the database, for processes without FALCON_CLOCK."""
    file = home / FILE
    with locked(home / f"{FILE}.lock", _PATIENCE, _DOING):
        noted = _noted(file)
        if clock.runs and noted.get("started") != (clock.started and clock.started.isoformat()):
            return  # of another home: this process cannot know what FALCON_CLOCK said there
        kept = noted if clock.runs else {"clock": clock.tag}
        if (note := {**kept, "tag": clock.tag, "database": database}) != noted:
            _write(file, note)
            home_clock.cache_clear()


def adopt_clock(home: Path, clock: Clock, database: str) -> None:
    """Makes the simulated clock of a restored database that of this home, with its start; raises OSError."""
    home.mkdir(parents=True, exist_ok=True)
    started = {"started": clock.started.isoformat()} if clock.started else {}
    with locked(home / f"{FILE}.lock", _PATIENCE, _DOING):
        _write(home / FILE, {"clock": clock.text, "tag": clock.tag, "database": database, **started})
    home_clock.cache_clear()
    shared_start.cache_clear()


@lru_cache(maxsize=8)
def shared_start(home: Path, text: str, database: str = "") -> datetime:
    """Returns the real time at which the clock ``text`` was started here: now, if it is new.

    Each process caches the first answer, so that its clock never jumps.

    Args:
        home: FALCON_HOME; created if missing.
        text: FALCON_CLOCK. A changed text is another clock, which starts now and replaces the file, unless the database
            has the recorded clock: this process will be refused then, and must not stop that clock.
        database: As in :func:`keep_clock`.

    Raises:
        SettingsError: the file can be neither read nor written.
    """
    file = home / FILE
    try:
        started = _start(_noted(file), text)
        if started is None:
            home.mkdir(parents=True, exist_ok=True)
            # Replacing an old file is reading and writing: without a lock, two processes could each write their own.
            with locked(home / f"{FILE}.lock", _PATIENCE, _DOING):
                noted = _noted(file)
                started = _start(noted, text)
                if started is None:
                    started = datetime.now(UTC)
                    if not (noted.get("database") == database and "started" in noted):
                        _write(file, {"clock": text, "started": started.isoformat()})
    except LockedError as error:
        raise SettingsError(f"FALCON_CLOCK: the start of {text} cannot be kept: {error}") from error
    except OSError as error:
        raise SettingsError(
            f"FALCON_CLOCK: the start of {text} cannot be kept in {file}: {error.strerror or error}; "
            "make FALCON_HOME writable"
        ) from error
    return started


def _noted(file: Path) -> dict[str, Any]:
    """Empty: the file is missing or damaged."""
    try:
        noted = json.loads(file.read_text())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _start(noted: dict[str, Any], text: str) -> datetime | None:
    """None: the record is of another clock."""
    try:
        started = datetime.fromisoformat(noted["started"])
        return started if noted["clock"] == text and started.tzinfo else None
    except (ValueError, TypeError, KeyError):
        return None


def _write(file: Path, noted: dict[str, Any]) -> None:
    new = file.with_name(f"{FILE}.new")  # only the holder of the lock writes it
    new.write_text(json.dumps(noted) + "\n")
    new.replace(file)
