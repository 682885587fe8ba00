"""What one thread computes can be cancelled by another one, as long as it has not begun to publish."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from falcon_assets.errors import FalconError


class CancelledError(FalconError):
    """What was computed was cancelled; the text says who did it and why."""


class Cancellation:
    """Whether what a thread computes is cancelled."""

    def __init__(self, why_not: Callable[[], str | None] = lambda: None) -> None:
        """It is not.

        Args:
            why_not: Is asked last, why what was computed must not be published; None: it may.
        """
        self._why_not = why_not
        self._lock = threading.Lock()
        self._actions: dict[object, Callable[[], object]] = {}
        self._ending: threading.Thread | None = None
        self._is_final = False
        self._why: str | None = None

    @property
    def why(self) -> str | None:
        """Why it is cancelled; None: it is not."""
        return self._why

    def cancel(self, why: str) -> None:
        """Cancels it, unless it is too late; said again, it ends what was begun since.

        Does not wait for the end: a program may take a while.
        """
        with self._lock:
            if self._is_final or (self._ending is not None and self._ending.is_alive()):
                return
            self._why = why
            self._ending = threading.Thread(target=self._end, name="cancels", daemon=True)
            self._ending.start()

    @contextmanager
    def ended_by(self, action: Callable[[], object]) -> Iterator[None]:
        """What is done in this context is ended by ``action``, which is called from another thread.

        Raises:
            CancelledError: it is cancelled already.
        """
        self.check()
        key = object()
        with self._lock:
            self._actions[key] = action
        try:
            yield
        finally:
            with self._lock:
                del self._actions[key]

    def check(self) -> None:
        """Goes on, where it is not cancelled.

        Raises:
            CancelledError: it is.
        """
        if self._why is not None:
            raise CancelledError(self._why)

    def make_final(self) -> None:
        """From now on it is too late to cancel it.

        Raises:
            CancelledError: it is cancelled already, or must not be published.
        """
        why = self._why_not()
        with self._lock:
            self._why = self._why or why
            self.check()
            self._is_final = True

    def _end(self) -> None:
        with self._lock:
            actions = list(self._actions.values())
        for action in actions:
            action()


_CURRENT: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def current_cancellation() -> Cancellation:
    """That of what this thread computes; one that nobody uses where there is none."""
    return _CURRENT.get() or Cancellation()


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[None]:
    """What this thread computes in this context can be cancelled."""
    token = _CURRENT.set(cancellation)
    try:
        yield
    finally:
        _CURRENT.reset(token)
