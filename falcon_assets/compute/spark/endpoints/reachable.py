"""Quick check whether Spark answers at an execute endpoint."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from falcon_assets.compute.spark.endpoints.confs import is_connect, without_secrets
from falcon_assets.compute.spark.endpoints.connect import is_ready
from falcon_assets.compute.spark.endpoints.connect_endpoint import DEFAULT_PORT, served_port
from falcon_assets.compute.spark.endpoints.standalone import is_standalone, silence_of_masters
from falcon_assets.errors import WorkflowError

CONNECT_SECONDS = 5.0


def require_reachable(cluster: str, endpoint: str, declared: str = "interfaces.execute.endpoint") -> None:
    """Raises WorkflowError if no standalone master or Connect server listens, in seconds, not Spark's minutes.

    ``declared`` names what declares the endpoint.
    """
    if why := silence_at(endpoint):
        raise WorkflowError(f"cluster {cluster!r}: {why}: {_starter(endpoint)}, or fix {declared}")


def silence_at(endpoint: str) -> str:
    """Returns that nothing answers at an endpoint, and why; "": something does, or there is nothing to ask."""
    if is_connect(endpoint):
        url = urlsplit(endpoint)
        why = silence_of(str(url.hostname), url.port or DEFAULT_PORT)  # a channel would try again for all of the time
        why = why or ("" if is_ready(endpoint, CONNECT_SECONDS) else "no answer in time")
        return f"no Spark Connect server answers at {without_secrets(endpoint)} ({why})" if why else ""
    if is_standalone(endpoint):
        why = silence_of_masters(endpoint, CONNECT_SECONDS)
        return f"no Spark master answers at {endpoint} ({why})" if why else ""
    return ""


def silence_of(host: str, port: int) -> str:
    """Returns why nothing accepts a connection; "": something does."""
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _starter(endpoint: str) -> str:
    port = served_port(endpoint)
    if port is None:
        return "start it"
    return f"start it with `falcon spark start{'' if port == DEFAULT_PORT else f' --port {port}'}`"
