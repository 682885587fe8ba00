"""The execute endpoint of a Spark Connect server: ``sc://host:port/;key=value;key=value``."""

from __future__ import annotations

from urllib.parse import urlsplit

from falcon_assets.compute.spark.endpoints.confs import is_connect

DEFAULT_PORT = 15002

_LOOPBACK = ("127.0.0.1", "localhost")


def served_port(endpoint: str) -> int | None:
    """Returns the port for ``falcon spark start``; None: the endpoint is remote, encrypted or has a token."""
    if not is_connect(endpoint):
        return None
    url = urlsplit(endpoint)
    if url.hostname not in _LOOPBACK or {key for key, _ in _parameters(url.path)} & {"token", "use_ssl"}:
        return None
    return url.port or DEFAULT_PORT


def with_token(endpoint: str, token: str) -> str:
    address, parameters = _split(_by_name(endpoint))
    return _joined(address, [*parameters, ("token", token)])


def without_token(endpoint: str) -> str:
    address, parameters = _split(_by_name(endpoint))
    return _joined(address, [(key, value) for key, value in parameters if key != "token"])


def _by_name(endpoint: str) -> str:
    """Replaces ``127.0.0.1`` by ``localhost``: PySpark sends a token without encryption only to that name."""
    return endpoint if served_port(endpoint) is None else endpoint.replace("//127.0.0.1", "//localhost", 1)


def _split(endpoint: str) -> tuple[str, list[tuple[str, str]]]:
    url = urlsplit(endpoint)
    return f"{url.scheme}://{url.netloc}", _parameters(url.path)


def _parameters(path: str) -> list[tuple[str, str]]:
    pairs = [part.partition("=") for part in path.strip("/;").split(";") if part]
    return [(key, value) for key, _, value in pairs]


def _joined(address: str, parameters: list[tuple[str, str]]) -> str:
    return address + ("/;" + ";".join(f"{key}={value}" for key, value in parameters) if parameters else "")
