"""Log filter for Dagster's daemon, which prints eighty lines a minute even if nothing has changed."""

from __future__ import annotations

import logging
import re

_PARTS = ("SensorDaemon", "SchedulerDaemon", "QueuedRunCoordinatorDaemon", "MonitoringDaemon")
_ROUTINE = re.compile(r"Checking for new runs |Checking run |Collected \d+ runs? for monitoring")
_FOUND = re.compile(r"(Sensor \S+ skipped): |\d+ (runs are currently in progress)\. ")
_NUMBER = re.compile(r"\d+")
_AGAIN_SECONDS = 600.0
"""Interval at which a lasting error is printed again; each tick has it anyway."""


def tell_only_news() -> None:
    """Lets the daemon's parts in this process print news only, unless ``--log-level debug`` is given; idempotent."""
    for part in _PARTS:
        logger = logging.getLogger(f"dagster.daemon.{part}")
        if not any(isinstance(one, OnlyNews) for one in logger.filters):
            logger.addFilter(OnlyNews(logger))


class OnlyNews(logging.Filter):
    """Suppresses routine messages, repetitions of the last message on a subject, and errors printed recently."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self._logger = logger
        self._said = dict[str, str]()
        self._errors = dict[str, float]()

    def filter(self, record: logging.LogRecord) -> bool:
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
