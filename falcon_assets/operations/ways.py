"""By which way an operation is asked for: a command, the Python API, or a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

Way: TypeAlias = Literal["cli", "api", "job"]
_WAY: ContextVar[Way] = ContextVar("way", default="api")


@contextmanager
def coming_by(way: Way) -> Iterator[None]:
    """What is asked for in this context comes by that way."""
    token = _WAY.set(way)
    try:
        yield
    finally:
        _WAY.reset(token)


def present_way() -> Way:
    """The way of what is asked for now."""
    return _WAY.get()
