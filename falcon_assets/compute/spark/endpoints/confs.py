"""The Spark configuration of a cluster."""

from __future__ import annotations

from falcon_assets.compute.spark.jvm import spark_environ
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.registry import ICEBERG


def is_connect(endpoint: str) -> bool:
    """Whether the execute endpoint is a Spark Connect server."""
    return endpoint.startswith("sc://")


def is_local(endpoint: str) -> bool:
    """Whether the execute endpoint means this very process."""
    return endpoint.partition("[")[0] == "local"


def cluster_confs(cluster: Cluster) -> dict[str, str]:
    """What the cluster says about Spark itself: its ``spark.*`` properties, and what its registry wants.

    Iceberg has no timestamps like those that Spark writes into Parquet by default.
    """
    registry = cluster.interfaces.registry
    is_iceberg = registry is not None and registry.endpoint.startswith(ICEBERG)
    wanted = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"} if is_iceberg else {}
    return wanted | {key: value for key, value in cluster.properties.items() if key.startswith("spark.")}


def executor_environ() -> dict[str, str]:
    """What makes executors take the names of files for UTF-8, and run in UTC, whatever their machines' shells say."""
    return {f"spark.executorEnv.{name}": value for name, value in spark_environ().items()}


def session_confs(cluster: Cluster, working: str) -> dict[str, str]:
    """The configuration of the cluster's session: our defaults, then what the cluster says.

    Args:
        cluster: Whose session it is.
        working: The cluster's working folder, path or URL; the warehouse goes below it.
    """
    endpoint = cluster.interfaces.execute.endpoint
    confs = {"spark.sql.session.timeZone": "UTC"}
    if not is_connect(endpoint):  # a Connect server has its own
        confs |= {
            "spark.app.name": f"falcon-{cluster.name}",
            "spark.sql.warehouse.dir": f"{working.rstrip('/')}/spark-warehouse",
            "spark.log.level": "WARN",
            "spark.ui.showConsoleProgress": "false",
            **executor_environ(),
        }
    if is_local(endpoint):
        confs |= {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }
    return confs | cluster_confs(cluster)


def without_secrets(endpoint: str) -> str:
    """The endpoint without its parameters, one of which may be a token (``sc://h:15002/;token=...``)."""
    return endpoint.partition("/;")[0]
