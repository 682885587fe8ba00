"""The ``spark.*`` properties of a process: which of them a session that others share can have."""

from __future__ import annotations

from collections.abc import Mapping

from falcon_assets.model.process import Process

_OF_APPLICATIONS = """
    acls admin api app appStateStore archives authenticate barrier blockManager broadcast buffer checkpoint cleaner
    connect cores deploy decommission default diskStore driver driverEnv dynamicAllocation eventLog excludeOnFailure
    executor executorEnv extraListeners file files hadoopRDD history io jars kerberos kryo kryoserializer kubernetes
    local locality log logConf master memory metrics network plugins port pyspark python rdd reducer redaction remote
    resources rpc scheduler security serializer shuffle shutdown speculation ssl stage standalone storage submit task
    taskMetrics ui unsafe user worker yarn
"""
"""The second word of the settings that Spark reads when an application starts."""
_STATIC = """
    spark.sql.cache.serializer spark.sql.catalogImplementation spark.sql.event.truncate.length spark.sql.extensions
    spark.sql.globalTempDatabase spark.sql.hive.thriftServer.singleSession spark.sql.hive.version
    spark.sql.metadataCacheTTLSeconds spark.sql.queryExecutionListeners spark.sql.sources.disabledJdbcConnProviderList
    spark.sql.streaming.streamingQueryListeners spark.sql.warehouse.dir
"""
"""Those of SQL (source: what ``SET -v`` lists, and ``isModifiable`` denies)."""
_STATIC_PREFIXES = ("spark.sql.hive.metastore.", "spark.sql.streaming.ui.", "spark.sql.ui.")


def spark_settings(process: Process, properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of Spark among properties of a process whose variables are filled in."""
    return {key: properties[key] for key in process.properties if key.startswith("spark.")}


def is_of_application(key: str) -> bool:
    """Whether a setting is known to be fixed when Spark starts; of others Spark itself says so."""
    if key in _STATIC.split() or key.startswith(_STATIC_PREFIXES):
        return True
    first, _, rest = key.partition(".")
    return first == "spark" and rest.partition(".")[0] in _OF_APPLICATIONS.split()
