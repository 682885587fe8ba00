"""Dagster resources: the Spark session of a cluster's execute interface."""

# Without postponed annotations: Dagster reads those of a resource as they are.
from collections.abc import Iterable, Mapping
from pathlib import Path

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.endpoints.confs import session_confs
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.secret_values import is_secret
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.dagster_names import op_name
from falcon_assets.settings import load_settings
from falcon_assets.storage.cluster_store import ClusterStore


class ClusterSparkResource(LazyPySparkResource):
    """dagster-pyspark's resource on the execute endpoint of a cluster, with a session that outlives the run.

    Assets of your own may require it too, under the key ``spark__<cluster>``. Its configuration, which the UI shows to
    everybody, has stars for the values of secrets.

    Attributes:
        home: ``FALCON_HOME``, with the token of a warm Spark Connect server.
    """

    cluster: dg.ResourceDependency[Cluster]
    home: str

    @property
    def spark_session(self) -> SparkSession:
        """The warm session of this process, started on first use; raises StorageError where the store is unusable."""
        return self.executor.session()

    @property
    def executor(self) -> SparkExecutor:
        return self.executor_named("")

    def executor_named(self, name: str) -> SparkExecutor:
        """That of the cluster's executors; of its ``interfaces.execute``, where it has none of that name."""
        return SparkExecutor(self.cluster.on(name), self._working, Path(self.home), name)

    def _working(self) -> str:
        settings = load_settings()
        return ClusterStore(self.cluster, Path(self.home), settings.environ, roots=roots_of(settings)).working


def resource_key(cluster: Cluster) -> str:
    return op_name("spark", cluster.name)


def spark_resources(
    clusters: Iterable[Cluster], home: Path, environ: Mapping[str, str]
) -> dict[str, ClusterSparkResource]:
    return {resource_key(cluster): _resource(cluster, home, environ) for cluster in clusters}


def _resource(cluster: Cluster, home: Path, environ: Mapping[str, str]) -> ClusterSparkResource:
    try:
        working = ClusterStore(cluster, home, environ).working
    except StorageError:  # said when it is used: the location serves the other clusters meanwhile
        working = ""
    return ClusterSparkResource(
        spark_config={
            key: "*****" if is_secret(key) else value for key, value in session_confs(cluster, working).items()
        },
        cluster=cluster,
        home=str(home),
    )
