"""Ticks that wait for news: one thread of the process looks for all of them, often, and at once when it is told."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from functools import lru_cache

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from falcon_assets.history.dagster_internals.notices import listening
from falcon_assets.instances.coordination.news import Mark, mark_of

_LOOK_SECONDS = 0.5
"""How long a command may be unseen, of which nobody is told."""
_PAUSE_SECONDS = 0.05
"""Between two looks: a run tells of twenty events at once."""
_IDLE_SECONDS = 10.0


@dataclass
class LedgerWatch:
    engine: Engine
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False)
    _mark: Mark | None = field(default=None, init=False)
    _looks: int = field(default=0, init=False)
    _wanted_until: float = field(default=0.0, init=False)
    _is_alive: bool = field(default=False, init=False)

    def wait(self, seen: Mark | None, seconds: float) -> None:
        """Returns when the tables are not as in ``seen`` any more, or after so many seconds."""
        with self._changed:
            self._wanted_until = max(self._wanted_until, time.monotonic() + seconds)
            if not self._is_alive:
                self._is_alive = True
                threading.Thread(target=self._watch, name="falcon ledger watch", daemon=True).start()
            before = self._looks  # a look that was before this is of before, too
            self._changed.wait_for(lambda: self._looks > before and self._mark != seen, seconds)

    def _watch(self) -> None:
        while self._is_wanted():
            try:
                self._look()
            except SQLAlchemyError:  # who waits looks when its time is over, and says what is wrong
                time.sleep(_LOOK_SECONDS)

    def _look(self) -> None:
        with (
            self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
            listening(connection) as notices,
        ):
            while self._is_wanted():
                mark = mark_of(connection)
                with self._changed:
                    self._mark, self._looks = mark, self._looks + 1
                    self._changed.notify_all()
                time.sleep(_PAUSE_SECONDS)
                notices(_LOOK_SECONDS)

    def _is_wanted(self) -> bool:
        with self._changed:
            self._is_alive = time.monotonic() < self._wanted_until + _IDLE_SECONDS
            return self._is_alive


@lru_cache(maxsize=4)
def watch_of(engine: Engine) -> LedgerWatch:
    return LedgerWatch(engine)
