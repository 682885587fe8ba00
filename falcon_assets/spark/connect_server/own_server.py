"""The warm server, for as long as a command needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from falcon_assets.model.cluster import Cluster
from falcon_assets.spark.connect_server import server
from falcon_assets.spark.endpoints.connect_endpoint import served_port


@contextmanager
def own_server(home: Path, environ: Mapping[str, str]) -> Iterator[Callable[[Cluster], None]]:
    """Gives what starts the Spark Connect server of ``home`` where a cluster has it as execute endpoint.

    A server that runs already is used and stays; what was started here is stopped at the end.

    Args:
        home: ``FALCON_HOME``.
        environ: The environment of the server.

    The given function raises:
        SettingsError: the server does not start; see :func:`falcon_assets.spark.connect_server.server.start`.
    """
    started: set[int] = set()

    def serve(cluster: Cluster) -> None:
        port = served_port(cluster.interfaces.execute.endpoint)
        if port is not None and port not in started and not server.start(home, port, environ).already:
            started.add(port)

    try:
        yield serve
    finally:
        if started:
            server.stop(home)
