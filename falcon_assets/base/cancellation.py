"""Cancels from one thread what another one computes, as long as that has not begun to publish."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from falcon_assets.errors import FalconError


class CancelledError(FalconError): ...


class Cancellation:
    def __init__(self, why_not: Callable[[], str | None] = lambda: None) -> None:
        """Takes what :meth:`make_final` asks last: why the result must not be published; None: it may."""
        self._why_not = why_not
        self._lock = threading.Lock()
        self._actions: dict[object, Callable[[], object]] = {}
        self._ending: threading.Thread | None = None
        self._is_final = False
        self._why: str | None = None

    @property
    def why(self) -> str | None:
        return self._why

    def cancel(self, why: str) -> None:
        """Cancels, unless it is too late, without waiting for the end; a second call ends actions added since."""
        with self._lock:
            if self._is_final or (self._ending is not None and self._ending.is_alive()):
                return
            self._why = why
            self._ending = threading.Thread(target=self._end, name="cancels", daemon=True)
            self._ending.start()

    @contextmanager
    def ended_by(self, action: Callable[[], object]) -> Iterator[None]:
        """Lets :meth:`cancel` end the block by ``action``, in another thread; CancelledError: it did so before."""
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
        if self._why is not None:
            raise CancelledError(self._why)

    def make_final(self) -> None:
        """Makes cancelling impossible; raises CancelledError if it is cancelled or must not be published."""
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
    return _CURRENT.get() or Cancellation()


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[None]:
    token = _CURRENT.set(cancellation)
    try:
        yield
    finally:
        _CURRENT.reset(token)
