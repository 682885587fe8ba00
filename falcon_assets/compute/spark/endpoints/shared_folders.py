"""Which execute endpoints share folders with this process: where they do, a store can be staged that Spark has not."""

from __future__ import annotations

from falcon_assets.compute.spark.endpoints.confs import is_local
from falcon_assets.compute.spark.endpoints.connect_endpoint import served_port
from falcon_assets.compute.spark.endpoints.standalone import is_standalone, masters
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.store_url import is_mounted

_LOOPBACK = ("127.0.0.1", "localhost")


def shares_folders(cluster: Cluster) -> bool:
    """Whether driver and workers of the cluster's Spark see the folders of its working location as this process does.

    They do where they run on this machine: ``local[N]``, the server of ``falcon spark start``, a standalone cluster
    whose masters are on loopback. And wherever the data of the cluster lies on a mounted file system: that has to be
    mounted for all of them anyhow.
    """
    endpoint = cluster.interfaces.execute.endpoint
    if is_local(endpoint) or served_port(endpoint) is not None or is_mounted(cluster.interfaces.write.endpoint):
        return True
    return is_standalone(endpoint) and all(host in _LOOPBACK for host, _ in masters(endpoint))
