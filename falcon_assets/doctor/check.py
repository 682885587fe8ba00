"""What a check of the doctor looks at, and what it says."""

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
    """How something is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and may surprise."""
    PROBLEM = "problem"
    """Something does not work."""


@dataclass(frozen=True)
class Judgement:
    """How one thing is.

    Attributes:
        status: Whether it is as it should be.
        text: What was found.
        fix: What to do; "": nothing.
    """

    status: Severity
    text: str
    fix: str = ""


def ok(text: str) -> Judgement:
    """It is as it should be."""
    return Judgement(Severity.OK, shown(text))


def warning(text: str, fix: str) -> Judgement:
    """It works, and may surprise."""
    return Judgement(Severity.WARNING, shown(text), shown(fix))


def problem(text: str, fix: str) -> Judgement:
    """It does not work."""
    return Judgement(Severity.PROBLEM, shown(text), shown(fix))


def shown(text: str) -> str:
    """The text on one line that a terminal can show, without passwords: drivers quote what they were told."""
    line = " ".join(text.split())
    return printable(_PASSWORD.sub(lambda found: f"{found[2]}***" if found[2] else f"{found[1]}:***@", line))


T = TypeVar("T")


class Once(Generic[T]):
    """Finds something when it is called for the first time; an error is raised by every call.

    Each has a lock of its own, so that what does not answer holds up only who asks for it.
    """

    def __init__(self, find: Callable[[], T]) -> None:
        """Finds nothing yet."""
        self._find, self._lock = find, threading.Lock()
        self._found: T | None = None
        self._error: Exception | None = None
        self._is_found = False

    def __call__(self) -> T:
        """What was found."""
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
    """This installation, as far as checks look at it; each part is looked at when a check asks for it.

    Attributes:
        settings: How it is set up.
        environ: The environment.
        now: The real time.
    """

    def __init__(self, settings: Settings, now: datetime) -> None:
        """Looks at nothing yet."""
        self.settings, self.environ, self.now = settings, settings.environ, now
        self.entities: Once[EntityStore] = Once(
            lambda: load_entities(settings.entity_defs, home=settings.home).in_colo(settings.colo)
        )
        """Of this colo; raises as loading them."""
        self.database: Once[DatabaseFacts | None] = Once(self._database)
        """None: the embedded one was not made yet. Raises a SettingsError where it cannot be reached."""
        self.dagster: Once[DagsterFacts | None] = Once(self._dagster)
        """None: Dagster has not made its tables yet. Raises a SettingsError where the database cannot be used."""

    def dagster_schema(self) -> tuple[str | None, str]:
        """Revision of Dagster's tables, and the one that the installed Dagster needs; raises as :attr:`database`."""
        from falcon_assets.doctor.dagster_probe import schema_of  # noqa: PLC0415 - takes seconds

        database = self.database()
        return schema_of(database.url) if database else (None, "")

    def entities_if_sound(self) -> EntityStore | None:
        """The entities; None where there are none or they have problems, which another check says."""
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


def not_checked(why: str) -> Judgement:
    """Of what nothing can be said about."""
    return warning(f"not checked: {why}", "mend that first")
