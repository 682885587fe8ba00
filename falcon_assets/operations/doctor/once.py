"""What several checks ask for, found once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

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
