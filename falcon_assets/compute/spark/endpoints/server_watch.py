"""Watches the server or cluster of a session: calls to one that was killed or disconnected would wait for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from falcon_assets.errors import WorkflowError

_INTERVAL_SECONDS = 5.0
_ANSWER_SECONDS = 5.0
_MISSES = 3
"""Number of checks in a row without an answer, after which the server counts as gone: it may just be busy."""


class ServerWatch:
    """Checks in the background whether a server still answers; ends all calls of its sessions when it is gone.

    ``is_ready`` receives a number of seconds; ``end_calls`` must end the calls of a session in all threads.
    """

    def __init__(self, is_ready: Callable[[float], bool], name: str, end_calls: Callable[[Any], object]) -> None:
        self._is_ready, self._name, self._end_calls = is_ready, name, end_calls
        self._sessions: set[Any] = set()
        self._over = threading.Event()
        self.is_gone = False
        threading.Thread(target=self._watch, name=f"watches {name}", daemon=True).start()

    def stop(self) -> None:
        self._over.set()

    def add(self, session: Any) -> None:
        self._sessions.add(session)

    @contextmanager
    def watching(self, session: Any) -> Iterator[None]:
        """Watches for that session; raises WorkflowError instead of Spark's error if the server is gone."""
        self.add(session)
        try:
            yield
        except Exception:
            if self.is_gone:
                raise WorkflowError(f"{self._name} does not answer any more; is it running?") from None
            raise
        finally:
            self._sessions.discard(session)
            session.release_session_on_close = not self.is_gone

    def interrupt(self) -> None:
        for session in list(self._sessions):
            with suppress(Exception):  # it ends anyhow, and the server forgets what nobody asks for
                session.interruptAll()

    def _watch(self) -> None:
        misses = 0
        while not self._over.wait(_INTERVAL_SECONDS):
            if not self.is_gone:
                misses = 0 if self._is_ready(_ANSWER_SECONDS) else misses + 1
                self.is_gone = misses >= _MISSES
            if self.is_gone:  # whoever does not know it yet may begin another call
                for session in list(self._sessions):
                    self._end_calls(session)
