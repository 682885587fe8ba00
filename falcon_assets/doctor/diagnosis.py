"""Input and result of a check of the doctor."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Generic, TypeVar

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.doctor.dagster_facts import DagsterFacts
from falcon_assets.doctor.database_facts import DatabaseFacts
from falcon_assets.errors import FalconError, count_of, printable
from falcon_assets.settings import Settings

_PASSWORD = re.compile(r"(://[^\s:/@]*):[^\s/]*@|((?:password|token|secret)=)[^\s&;]+", re.IGNORECASE)


class Severity(Enum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Diagnosis:
    status: Severity
    text: str
    fix: str = ""


def ok(text: str) -> Diagnosis:
    return Diagnosis(Severity.OK, shown(text))


def warning(text: str, fix: str) -> Diagnosis:
    return Diagnosis(Severity.WARNING, shown(text), shown(fix))


def problem(text: str, fix: str) -> Diagnosis:
    return Diagnosis(Severity.PROBLEM, shown(text), shown(fix))


def shown(text: str) -> str:
    """Returns the text on one line that a terminal can show, without passwords: drivers quote their arguments."""
    line = " ".join(text.split())
    return printable(_PASSWORD.sub(lambda found: f"{found[2]}***" if found[2] else f"{found[1]}:***@", line))


T = TypeVar("T")


class Once(Generic[T]):
    """Computes a value on the first call, and returns it, or raises its error, on every call.

    Each has a lock of its own, so that one that blocks delays only its own callers.
    """

    def __init__(self, find: Callable[[], T]) -> None:
        self._find, self._lock = find, threading.Lock()
        self._found: T | None = None
        self._error: Exception | None = None
        self._is_found = False

    def __call__(self) -> T:
        with self._lock:
            if not self._is_found:
                try:
                    self._found = self._find()
                except Exception as error:
                    self._error = error
                self._is_found = True
        if self._error is not None:
            raise self._error
        return self._found  # type: ignore[return-value]  # None only where that was found


class CheckContext:
    """This installation as checks see it; each part is read when a check first needs it. ``now`` is the real time."""

    def __init__(self, settings: Settings, now: datetime) -> None:
        self.settings, self.environ, self.now = settings, settings.environ, now
        self.entities: Once[EntityStore] = Once(
            lambda: load_entities(settings.entity_defs, home=settings.home).in_colo(settings.colo)
        )
        """Of this colo; raises as loading them."""
        self.database: Once[DatabaseFacts | None] = Once(self._database)
        """None: the embedded database does not exist yet. Raises SettingsError if it cannot be reached."""
        self.dagster: Once[DagsterFacts | None] = Once(self._dagster)
        """None: Dagster has not created its tables yet. Raises SettingsError if the database cannot be used."""

    def dagster_schema(self) -> tuple[str | None, str]:
        """Returns the revision of Dagster's tables, and the one that Dagster needs; raises as :attr:`database`."""
        from falcon_assets.doctor.dagster_probe import schema_of  # noqa: PLC0415 - takes seconds

        database = self.database()
        return schema_of(database.url) if database else (None, "")

    def entities_if_sound(self) -> EntityStore | None:
        """None: there are none, or they have problems, which another check reports."""
        try:
            return self.entities()
        except FalconError:
            return None

    def _database(self) -> DatabaseFacts | None:
        from falcon_assets.doctor.database_probe import database_facts  # noqa: PLC0415 - takes seconds

        return database_facts(self.settings)

    def _dagster(self) -> DagsterFacts | None:
        from falcon_assets.doctor.dagster_probe import dagster_facts  # noqa: PLC0415 - takes seconds

        database = self.database()
        if database is None or not database.has_dagster:
            return None
        store = self.entities_if_sound()
        return dagster_facts(self.settings, database.url, store.workloads if store else ())


_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def lasting(time: timedelta) -> str:
    """``3 hours``: in the largest unit that fits."""
    seconds = int(time.total_seconds())
    for length, unit in _UNITS:
        if seconds >= length:
            return count_of(seconds // length, unit)
    return count_of(seconds, "second")


def not_checked(why: str) -> Diagnosis:
    return warning(f"not checked: {why}", "fix that first")
