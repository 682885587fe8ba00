"""Origin of a requested operation: a command, the Python API, a job, or a request over the network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple, TypeAlias

from falcon_assets.model.access import Principal

Way: TypeAlias = Literal["cli", "api", "job", "rest", "page", "graphql"]


class RequestOrigin(NamedTuple):
    """The origin of requests in a context.

    Attributes:
        refusal: Why all are denied.
        actor: Of those that name none.
        principal: Who came over the network, as the front knows them: the operating system is not asked. None: they
            did not.
        colos: Where it is to be done, of those of a front of several; empty: where it belongs.
        only_data: Whether nothing but the data of the result is looked at.
    """

    way: Way = "api"
    refusal: str | None = None
    actor: str | None = None
    principal: Principal | None = None
    colos: tuple[str, ...] = ()
    only_data: bool = False

    @property
    def takes_files(self) -> bool:
        """Whether who asks may read what this process may, so that requests can name its files."""
        return self.way in ("cli", "api") and self.principal is None


_OF_PROGRAMS = RequestOrigin()
ORIGIN: ContextVar[RequestOrigin] = ContextVar("origin", default=_OF_PROGRAMS)


@contextmanager
def requests_from(
    way: Way,
    refusal: str | None = None,
    actor: str | None = None,
    principal: Principal | None = None,
    colos: tuple[str, ...] = (),
    *,
    only_data: bool = False,
) -> Iterator[None]:
    """Sets the origin of requests in this context."""
    token = ORIGIN.set(RequestOrigin(way, refusal, actor, principal, colos, only_data))
    try:
        yield
    finally:
        ORIGIN.reset(token)
