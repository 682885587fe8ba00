"""The Spark configuration of a cluster."""

from __future__ import annotations

from falcon_assets.compute.spark.jvm import spark_environ
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.table_catalog_url import ICEBERG


def is_connect(endpoint: str) -> bool:
    return endpoint.startswith("sc://")


def is_local(endpoint: str) -> bool:
    return endpoint.partition("[")[0] == "local"


def cluster_confs(cluster: Cluster) -> dict[str, str]:
    """Returns the cluster's ``spark.*`` properties, with timestamps that Iceberg supports, if its registry is one."""
    registry = cluster.interfaces.registry
    is_iceberg = registry is not None and registry.endpoint.startswith(ICEBERG)
    wanted = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"} if is_iceberg else {}
    return wanted | {key: value for key, value in cluster.properties.items() if key.startswith("spark.")}


def executor_environ() -> dict[str, str]:
    """Makes executors decode file names as UTF-8, and run in UTC, regardless of their machines' environment."""
    return {f"spark.executorEnv.{name}": value for name, value in spark_environ().items()}


def session_confs(cluster: Cluster, working: str) -> dict[str, str]:
    """Returns our defaults, overridden by the cluster's properties; the warehouse is below ``working``."""
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
    """Removes the endpoint's parameters, one of which may be a token (``sc://h:15002/;token=...``)."""
    return endpoint.partition("/;")[0]
