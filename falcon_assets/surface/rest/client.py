"""A client of REST: has a server perform operations, and reads what they give."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import requests
from pydantic import ValidationError
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, SSLError

from falcon_assets.errors import FalconError, QueryError, RefusedElsewhereError, UsageError, printable
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.operation import Operation
from falcon_assets.surface.rest.endpoints import (
    AS_RESULT,
    NAMES,
    Endpoint,
    adapter_of,
    endpoint_of,
    loaded,
    parameter_of,
)
from falcon_assets.surface.rest.requests import COLO
from falcon_assets.surface.rest.routes import UNANSWERED

PREFIX = "/falcon/api/v1"
_JSON = "application/json"
_CONNECT, _READ = 10, 300
_SHOWN = 300


class RemoteError(RefusedElsewhereError):
    """The server refused, or does not answer; ``was_sent``: what was asked for may be performed."""

    was_sent = True


@dataclass(frozen=True)
class Server:
    """A server of falcon.

    Attributes:
        url: Without the path of REST.
        token: None: none is sent.
        seconds: How long connecting may take, and each wait for more of an answer.
        certificate: What is shown to the server: PEM files of a certificate and its key; None: nothing.
        authorities: PEM file with those of the server's certificate; True: those of this machine.
        session: Keeps connections.
        headers: Are sent besides.
        colos: Where it is to be done, of those of a front of several; empty: where it belongs.
        on_unanswered: Is called with the names of colos that did not answer.
    """

    url: str
    token: str | None
    seconds: tuple[float, float] = (_CONNECT, _READ)
    certificate: tuple[str, str] | None = None
    authorities: str | bool = True
    session: requests.Session = field(default_factory=requests.Session)
    headers: Mapping[str, str] = field(default_factory=dict)
    colos: tuple[str, ...] = ()
    on_unanswered: Callable[[str], object] = str

    def perform(self, asked: Operation, *, as_json: bool = True) -> Any:
        """The result, as the operation gives it, or only its data; raises RemoteError, and QueryError as it."""
        endpoint = endpoint_of(type(asked))
        placed = {parameter_of(name): _in_path(getattr(asked, name)) for name in endpoint.placed}
        given = _given(endpoint, asked)
        how: dict[str, Any] = {"json": given} if endpoint.has_body else {"params": [*_query(given)]}
        accept = _JSON if as_json else f"{AS_RESULT}, {_JSON}"
        answer = self._send(endpoint.method, endpoint.path.format(**placed), accept, **how)
        if answer.headers.get("Content-Type", "").startswith("text/plain"):
            return answer.text
        if answer.headers.get("Content-Type") == AS_RESULT and adapter_of(type(asked)) is not None:
            try:
                return loaded(type(asked), answer.text)
            except ValidationError as error:
                raise RemoteError(f"{self.url} has another version of falcon: its answer is not understood") from error
        return _Data(answer.json(), "Falcon-Failed" in answer.headers)

    def data_and_time(self, asked: type[Operation]) -> tuple[Any, str]:
        """The data of an operation that needs nothing, and the time there as HTTP writes it; raises RemoteError."""
        endpoint = endpoint_of(asked)
        answer = self._send(endpoint.method, endpoint.path, accept=_JSON)
        return answer.json(), answer.headers.get("Date", "")

    def definition(self, name: str, kind: str | None) -> str:
        """The text of a definition."""
        params = {"kind": kind} if kind else {}
        answer = self._send("GET", f"/entities/{_in_path(name)}", accept="application/yaml", params=params)
        return str(answer.text)

    def _send(self, method: str, path: str, accept: str, **how: Any) -> Any:
        if self.colos:
            params = how.get("params", [])
            given = [*(params.items() if isinstance(params, Mapping) else params)]
            how["params"] = [*given, *((COLO, one) for one in self.colos)]
        how |= {"timeout": self.seconds, "cert": self.certificate, "verify": self.authorities}
        how |= {"headers": {"Accept": accept, **self.headers}, "auth": self._signed, "allow_redirects": False}
        try:
            answer = self.session.request(method, f"{self.url}{PREFIX}{path}", **how)
        except (requests.RequestException, OSError) as error:  # OSError: a file of TLS is not there
            refused = RemoteError(f"{self.url} cannot be reached: {_why(error)}")
            refused.was_sent = not _is_unsent(error)
            raise refused from None
        except UnicodeEncodeError as error:
            said = printable(str(error.object)[error.start : error.end])
            raise RemoteError(f"what is asked for has bytes that are no UTF-8, {said}: set PYTHONUTF8=1") from None
        if answer.is_redirect:
            place = printable(answer.headers["Location"])[:_SHOWN]
            message = f"{self.url} is no falcon server, or is at another address: it refers to {place}"
            raise RemoteError(message, answer.status_code)
        if answer.ok:
            if UNANSWERED in answer.headers:
                self.on_unanswered(unquote(answer.headers[UNANSWERED]))
            return answer
        raise _refusal(answer, self.url)

    def _signed(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """With the token; without one, too, as requests would take a password from .netrc otherwise."""
        if self.token:
            request.headers["Authorization"] = f"Bearer {self.token}"
        return request


def _reason(error: Exception) -> object:
    """What requests has wrapped; None: nothing."""
    return getattr(error.args[0], "reason", None) if error.args else None


def _why(error: Exception) -> str:
    """Without the pools and connections that the libraries name first."""
    text = str(_reason(error) or error)
    return printable(text.partition("): ")[2] or text)[:_SHOWN]


def _is_unsent(error: Exception) -> bool:
    """Whether there was no connection, so that the server knows nothing of it."""
    reason = _reason(error)
    never = (NewConnectionError, ConnectTimeoutError, SSLError)
    return (
        not isinstance(error, requests.RequestException)
        or isinstance(error, requests.ConnectTimeout | requests.exceptions.SSLError)
        or isinstance(reason, never)
    )


@dataclass(frozen=True)
class _Data:
    """The data of a result that has no other form over the network."""

    data: Any
    failed: bool

    def as_data(self) -> Any:
        return self.data

    def __getattr__(self, name: str) -> Any:
        raise _NotShownError("this result is shown as JSON only where it comes from a server: add --json")


class _NotShownError(UsageError, AttributeError):
    """A display asks for what the data of a result does not have."""


def _refusal(answer: requests.Response, url: str) -> FalconError:
    try:
        said = answer.json()
        detail, kind = str(said["detail"]), str(said["type"])
    except (ValueError, KeyError, TypeError):
        message = f"{url} answered with status {answer.status_code}, and not as falcon does"
        return RemoteError(message, answer.status_code)
    return QueryError(detail) if kind == "urn:falcon:query" else RemoteError(detail, answer.status_code, kind)


def _in_path(value: Any) -> str:
    text = ",".join(value) if isinstance(value, tuple) else str(_plain(value))
    return quote(text, safe=",:")


def _given(endpoint: Endpoint, asked: Operation) -> dict[str, Any]:
    """What is given beside the path, without what is as usual; files are read here, as the server has others."""
    found = {}
    for name in asked.model_fields_set - {*endpoint.placed, "actor"}:
        value = getattr(asked, name)
        if value == type(asked).model_fields[name].get_default(call_default_factory=True):
            continue
        if name not in endpoint.fields:
            raise UsageError(f"--{name.replace('_', '-')} names a file of this machine: leave it out with --server")
        found[name] = _plain(value)
    if asked.model_extra is None and "definitions" in endpoint.fields and NAMES in found:
        texts, names = [], []
        for one in found.pop(NAMES):
            files = [*_files(Path(one))]
            texts += [file.read_text(encoding="utf-8") for file in files]
            names += [] if files else [one]
        found |= {"definitions": "\n---\n".join(filter(None, [found.get("definitions"), *texts]))} if texts else {}
        found |= {NAMES: names} if names else {}
    return found


def _files(path: Path) -> Iterator[Path]:
    """The files of definitions that a word stands for; none: it is a name."""
    try:
        if path.is_dir() and os.sep in str(path):
            yield from (one for one in sorted(path.rglob("*")) if one.suffix in (".yaml", ".yml") and one.is_file())
        elif path.is_file():
            yield path
    except (OSError, ValueError):
        return


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, Frequency):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _query(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if name == "filters":
            yield from (("filter", f"{field}={wanted}") for field, wanted in value)
        elif isinstance(value, dict):
            yield from ((name, f"{key}={one}") for key, one in value.items())
        else:
            for one in value if isinstance(value, list) else [value]:
                yield name, str(one).lower() if isinstance(one, bool) else str(one)


def performed_by(server: Server, asked: Operation, *, as_json: bool) -> Operation:
    """The operation, which the server performs when it is run; raises UsageError for what is only for this machine."""
    if not asked.remote:
        raise UsageError(f"falcon {asked.command} is about this machine: leave --server out")
    there = _performed_there(type(asked)).model_construct(asked.model_fields_set, **dict(asked))
    there.__dict__[_SERVER] = partial(server.perform, as_json=as_json)
    return there


_SERVER = "_server"


@cache
def _performed_there(operation: type[Operation]) -> type[Operation]:
    def run(self: Operation, installation: object) -> Any:
        given = {name: value for name, value in self.__dict__.items() if name != _SERVER}
        return self.__dict__[_SERVER](operation.model_construct(self.model_fields_set, **given))

    return type(operation.__name__, (operation,), {"run": run, "__module__": operation.__module__})
