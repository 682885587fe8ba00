"""What Dagster's daemon prints: by itself it says in each round that nothing has changed, eighty lines a minute."""

from __future__ import annotations

import logging
import re

_PARTS = ("SensorDaemon", "SchedulerDaemon", "QueuedRunCoordinatorDaemon", "MonitoringDaemon")
_ROUTINE = re.compile(r"Checking for new runs |Checking run |Collected \d+ runs? for monitoring")
"""What it says before it looks."""
_FOUND = re.compile(r"(Sensor \S+ skipped): |\d+ (runs are currently in progress)\. ")
"""What it says when it has looked, and about what."""
_NUMBER = re.compile(r"\d+")
_AGAIN_SECONDS = 600.0
"""An error that stays is printed so often; it is in each tick."""


def tell_only_news() -> None:
    """Lets the parts of the daemon print what is new, in whichever process they are; once is enough.

    With ``--log-level debug`` they print everything. Ticks show it in the UI in any case.
    """
    for part in _PARTS:
        logger = logging.getLogger(f"dagster.daemon.{part}")
        if not any(isinstance(one, OnlyNews) for one in logger.filters):
            logger.addFilter(OnlyNews(logger))


class OnlyNews(logging.Filter):
    """Holds back what is said in every round, what was said last about the same, and errors that were said just now."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self._logger = logger
        self._said = dict[str, str]()
        self._errors = dict[str, float]()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is printed."""
        if self._logger.isEnabledFor(logging.DEBUG):
            return True
        if record.levelno != logging.INFO:
            return self._is_new_error(record)
        text = record.getMessage()
        if _ROUTINE.match(text):
            return False
        if (found := _FOUND.match(text)) is None:
            return True
        about = found[1] or found[2]
        is_new = self._said.get(about) != text
        self._said[about] = text
        return is_new

    def _is_new_error(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return True
        text = _NUMBER.sub("#", str(error))  # it is said how many seconds are left, and where in memory something is
        self._errors = {said: at for said, at in self._errors.items() if record.created - at < _AGAIN_SECONDS}
        is_new = text not in self._errors
        self._errors.setdefault(text, record.created)
        return is_new
