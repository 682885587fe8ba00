"""The Spark of a cluster's execute endpoint as an executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from falcon_assets.compute.engines.computing.programs import stop_programs
from falcon_assets.compute.spark.endpoints.confs import cluster_confs, is_local
from falcon_assets.compute.spark.endpoints.connect_endpoint import served_port
from falcon_assets.compute.spark.endpoints.reachable import require_reachable
from falcon_assets.compute.spark.endpoints.standalone import is_standalone, masters
from falcon_assets.compute.spark.provisioned import provisioned_confs
from falcon_assets.compute.spark.sessions import interrupt_sessions, session_for
from falcon_assets.model.cluster import Cluster

_LOOPBACK = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class SparkExecutor:
    """Fulfils :class:`.Executor`; ``working`` returns the cluster's working location, and may raise StorageError.

    ``cluster`` executes where it does, as :meth:`.Cluster.on` makes it.
    """

    cluster: Cluster
    working: Callable[[], str]
    home: Path | None = None
    name: str = ""

    @property
    def endpoint(self) -> str:
        return self.cluster.interfaces.execute.endpoint

    @property
    def properties(self) -> Mapping[str, str]:
        return cluster_confs(self.cluster) | provisioned_confs(self.endpoint, self.home)

    @property
    def shares_folders(self) -> bool:
        """Whether driver and workers see the cluster's working location as this process does.

        They do on this machine: ``local[N]``, the server of ``falcon spark start``, a standalone cluster with all
        masters on loopback; and where it lies beside the data on a mounted file system, which must be mounted for all.
        """
        endpoint, written = self.endpoint, self.cluster.interfaces.write
        if is_local(endpoint) or served_port(endpoint) is not None or written.has_working:
            return True
        return is_standalone(endpoint) and all(host in _LOOPBACK for host, _ in masters(endpoint))

    def require_reachable(self) -> None:
        require_reachable(self.cluster.name, self.endpoint, self.cluster.declared_endpoint)

    def session(self) -> SparkSession:
        return session_for(self.cluster, self.working(), self.home)

    def interrupt(self) -> None:
        interrupt_sessions()
        stop_programs()
