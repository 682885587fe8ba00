"""Origin of a requested operation: a command, the Python API, or a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

Origin: TypeAlias = Literal["cli", "api", "job"]
_ORIGIN: ContextVar[Origin] = ContextVar("origin", default="api")
_REFUSAL: ContextVar[str | None] = ContextVar("refusal", default=None)
_ACTOR: ContextVar[str | None] = ContextVar("actor", default=None)


@contextmanager
def requests_from(origin: Origin, refusal: str | None = None, actor: str | None = None) -> Iterator[None]:
    """Sets the origin of requests in this context; ``refusal`` denies all, ``actor`` is for those that name none."""
    tokens = _ORIGIN.set(origin), _REFUSAL.set(refusal), _ACTOR.set(actor)
    try:
        yield
    finally:
        _ACTOR.reset(tokens[2])
        _ORIGIN.reset(tokens[0])
        _REFUSAL.reset(tokens[1])


def present_origin() -> Origin:
    return _ORIGIN.get()


def present_actor() -> str | None:
    return _ACTOR.get()


def present_refusal() -> str | None:
    return _REFUSAL.get()
