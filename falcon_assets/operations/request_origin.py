"""Origin of a requested operation: a command, the Python API, or a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple, TypeAlias

Way: TypeAlias = Literal["cli", "api", "job"]


class RequestOrigin(NamedTuple):
    """The origin of requests in a context; ``refusal`` denies all, ``actor`` is for those that name none."""

    way: Way = "api"
    refusal: str | None = None
    actor: str | None = None


_OF_PROGRAMS = RequestOrigin()
ORIGIN: ContextVar[RequestOrigin] = ContextVar("origin", default=_OF_PROGRAMS)


@contextmanager
def requests_from(way: Way, refusal: str | None = None, actor: str | None = None) -> Iterator[None]:
    """Sets the origin of requests in this context."""
    token = ORIGIN.set(RequestOrigin(way, refusal, actor))
    try:
        yield
    finally:
        ORIGIN.reset(token)
