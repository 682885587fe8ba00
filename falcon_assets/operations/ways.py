"""By which way an operation is asked for: a command, the Python API, or a job."""

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
    """What is asked for in this context comes by that way.

    Args:
        way: Which.
        refusal: Why nothing that is asked for by it is done; it is written down as denied.
        actor: For whom it is asked for, where requests do not say it; None: for the user of the operating system.
    """
    tokens = _WAY.set(way), _REFUSAL.set(refusal), _ACTOR.set(actor)
    try:
        yield
    finally:
        _ACTOR.reset(tokens[2])
        _WAY.reset(tokens[0])
        _REFUSAL.reset(tokens[1])


def present_way() -> Way:
    """The way of what is asked for now."""
    return _WAY.get()


def present_actor() -> str | None:
    """For whom things are asked for now, where requests do not say it; None: for the user of the operating system."""
    return _ACTOR.get()


def present_refusal() -> str | None:
    """Why nothing that is asked for now is done; None: it is."""
    return _REFUSAL.get()
