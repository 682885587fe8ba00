"""What Dagster's daemon prints: by itself it says in each round that nothing has changed, eighty lines a minute."""

from __future__ import annotations

import logging
import re

_PARTS = ("SensorDaemon", "SchedulerDaemon", "QueuedRunCoordinatorDaemon", "MonitoringDaemon")
_ROUTINE = re.compile(r"Checking for new runs |Checking run |Collected \d+ runs? for monitoring")
"""What it says before it looks."""
_FOUND = re.compile(r"(Sensor \S+ skipped): |\d+ (runs are currently in progress)\. ")
"""What it says when it has looked, and about what."""


def tell_only_news() -> None:
    """Lets the parts of the daemon print what is new, in whichever process they are; once is enough.

    With ``--log-level debug`` they print everything. Ticks show it in the UI in any case.
    """
    for part in _PARTS:
        logger = logging.getLogger(f"dagster.daemon.{part}")
        if not any(isinstance(one, OnlyNews) for one in logger.filters):
            logger.addFilter(OnlyNews(logger))


class OnlyNews(logging.Filter):
    """Holds back what is said in every round, and what was said last about the same."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self._logger = logger
        self._said = dict[str, str]()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is printed."""
        if record.levelno != logging.INFO or self._logger.isEnabledFor(logging.DEBUG):
            return True
        text = record.getMessage()
        if _ROUTINE.match(text):
            return False
        if (found := _FOUND.match(text)) is None:
            return True
        about = found[1] or found[2]
        is_new = self._said.get(about) != text
        self._said[about] = text
        return is_new
