"""Whether commands are performed here, or by a server, which ``falcon --server URL`` names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from falcon_assets.errors import UsageError, printable
from falcon_assets.operations.server_tokens import server_token

if TYPE_CHECKING:
    from falcon_assets.operations.operation import Operation
    from falcon_assets.surface.rest.client import Server

_SHOWN = 300
_COLOS: ContextVar[tuple[str, ...]] = ContextVar("colos", default=())
_URL: ContextVar[str | None] = ContextVar("server", default=None)


def legal_server(url: str) -> str:
    """Returns the URL without a slash at its end; raises UsageError for what is none."""
    split = urlsplit(url)
    if split.scheme not in ("http", "https") or not split.hostname or split.username or split.query:
        raise UsageError(f"{printable(url)[:_SHOWN]!r} is no server: write an http URL, as https://falcon.example")
    return url.rstrip("/")


@contextmanager
def performed_at(url: str | None, colos: tuple[str, ...] = ()) -> Iterator[None]:
    """Has operations performed by a server, in these of its colos; None: here. Raises UsageError for what is no URL."""
    reset, of_colos = _URL.set(legal_server(url) if url else None), _COLOS.set(colos)
    try:
        yield
    finally:
        _URL.reset(reset)
        _COLOS.reset(of_colos)


def server() -> Server | None:
    """Returns the server that performs operations; None: this machine does."""
    url = _URL.get()
    if url is None:
        return None
    from falcon_assets.surface.rest.client import Server  # noqa: PLC0415 - most commands are for here

    return Server(url, server_token(url), colos=_COLOS.get(), on_unanswered=_say_unanswered)


def _say_unanswered(names: str) -> None:
    click.echo(f"without what is in these colos, which do not answer: {names}", err=True)


def here_or_there(asked: Operation, *, as_json: bool) -> Operation:
    """The operation, which is performed here or by the server when it is run, for its data only or to be shown.

    Raises UsageError for what is only for here.
    """
    there = server()
    if there is None:
        return asked
    from falcon_assets.surface.rest.client import performed_by  # noqa: PLC0415 - as above

    return performed_by(there, asked, as_json=as_json)
