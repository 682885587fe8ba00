"""Quick check whether Spark answers at a cluster's execute endpoint."""

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
    if is_connect(endpoint):
        why = _silent(endpoint)
        if why:
            where = without_secrets(endpoint)
            raise _unreachable(cluster, "Spark Connect server", where, why, _starter(endpoint), declared)
    elif is_standalone(endpoint):
        why = silence_of_masters(endpoint, CONNECT_SECONDS)
        if why:
            raise _unreachable(cluster, "Spark master", endpoint, why, "start it", declared)


def _silent(endpoint: str) -> str:
    url = urlsplit(endpoint)
    try:  # a channel would try again for all of the time
        socket.create_connection((url.hostname, url.port or DEFAULT_PORT), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return "" if is_ready(endpoint, CONNECT_SECONDS) else "no answer in time"


def _starter(endpoint: str) -> str:
    port = served_port(endpoint)
    if port is None:
        return "start it"
    return f"start it with `falcon spark start{'' if port == DEFAULT_PORT else f' --port {port}'}`"


def _unreachable(cluster: str, what: str, endpoint: str, why: str, fix: str, declared: str) -> WorkflowError:
    return WorkflowError(f"cluster {cluster!r}: no {what} answers at {endpoint} ({why}): {fix}, or fix {declared}")
