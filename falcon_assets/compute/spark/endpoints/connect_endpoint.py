"""The execute endpoint of a Spark Connect server: ``sc://host:port/;key=value;key=value``."""

from __future__ import annotations

from urllib.parse import urlsplit

from falcon_assets.compute.spark.endpoints.confs import is_connect

DEFAULT_PORT = 15002
"""Where a Spark Connect server listens, and where clients look for it, unless they are told otherwise."""

_LOOPBACK = ("127.0.0.1", "localhost")


def served_port(endpoint: str) -> int | None:
    """The port at which ``falcon spark start`` may serve the endpoint; None where it is somebody else's.

    It may where the endpoint is on loopback, is not encrypted and brings no token of its own.
    """
    if not is_connect(endpoint):
        return None
    url = urlsplit(endpoint)
    if url.hostname not in _LOOPBACK or {key for key, _ in _parameters(url.path)} & {"token", "use_ssl"}:
        return None
    return url.port or DEFAULT_PORT


def with_token(endpoint: str, token: str) -> str:
    """The endpoint of a server on loopback with a token among its parameters."""
    address, parameters = _split(_by_name(endpoint))
    return _joined(address, [*parameters, ("token", token)])


def without_token(endpoint: str) -> str:
    """The endpoint without its token, for a command line; its other parameters stay."""
    address, parameters = _split(_by_name(endpoint))
    return _joined(address, [(key, value) for key, value in parameters if key != "token"])


def _by_name(endpoint: str) -> str:
    """The endpoint with ``localhost`` for ``127.0.0.1``: only to that name PySpark shows a token without encryption."""
    return endpoint if served_port(endpoint) is None else endpoint.replace("//127.0.0.1", "//localhost", 1)


def _split(endpoint: str) -> tuple[str, list[tuple[str, str]]]:
    url = urlsplit(endpoint)
    return f"{url.scheme}://{url.netloc}", _parameters(url.path)


def _parameters(path: str) -> list[tuple[str, str]]:
    pairs = [part.partition("=") for part in path.strip("/;").split(";") if part]
    return [(key, value) for key, _, value in pairs]


def _joined(address: str, parameters: list[tuple[str, str]]) -> str:
    return address + ("/;" + ";".join(f"{key}={value}" for key, value in parameters) if parameters else "")
