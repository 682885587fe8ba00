"""The way by which an operation is requested: a command, the Python API, or a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

Way: TypeAlias = Literal["cli", "api", "job"]
_WAY: ContextVar[Way] = ContextVar("way", default="api")
_REFUSAL: ContextVar[str | None] = ContextVar("refusal", default=None)
_ACTOR: ContextVar[str | None] = ContextVar("actor", default=None)


@contextmanager
def coming_by(way: Way, refusal: str | None = None, actor: str | None = None) -> Iterator[None]:
    """Sets the way of requests in this context; ``refusal`` denies them all, ``actor`` is for those that name none."""
    tokens = _WAY.set(way), _REFUSAL.set(refusal), _ACTOR.set(actor)
    try:
        yield
    finally:
        _ACTOR.reset(tokens[2])
        _WAY.reset(tokens[0])
        _REFUSAL.reset(tokens[1])


def present_way() -> Way:
    return _WAY.get()


def present_actor() -> str | None:
    return _ACTOR.get()


def present_refusal() -> str | None:
    return _REFUSAL.get()
