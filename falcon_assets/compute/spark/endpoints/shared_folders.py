"""Whether an execute endpoint shares folders with this process, so that data without a connector is staged there."""

from __future__ import annotations

from falcon_assets.compute.spark.endpoints.confs import is_local
from falcon_assets.compute.spark.endpoints.connect_endpoint import served_port
from falcon_assets.compute.spark.endpoints.standalone import is_standalone, masters
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.store_url import is_mounted

_LOOPBACK = ("127.0.0.1", "localhost")


def shares_folders(cluster: Cluster) -> bool:
    """Whether driver and workers of the cluster's Spark see its working location as this process does.

    They do on this machine: ``local[N]``, the server of ``falcon spark start``, a standalone cluster with all masters
    on loopback; and where the cluster's data is on a mounted file system, which must be mounted for all of them.
    """
    endpoint = cluster.interfaces.execute.endpoint
    if is_local(endpoint) or served_port(endpoint) is not None or is_mounted(cluster.interfaces.write.endpoint):
        return True
    return is_standalone(endpoint) and all(host in _LOOPBACK for host, _ in masters(endpoint))
