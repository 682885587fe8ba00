"""What a process says about Spark, in the session of one of its instances."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from falcon_assets.errors import WorkflowError
from falcon_assets.spark.failures import SPARK_ERRORS, condition_of, explain

_HADOOP = "spark.hadoop."
_FIXED = ("CANNOT_MODIFY_CONFIG", "CANNOT_MODIFY_STATIC_CONFIG")


def apply_settings(child: SparkSession, settings: Mapping[str, str], process: str) -> None:
    """Sets them for this session only; of ``spark.hadoop.*`` what a session knows them by.

    Raises:
        WorkflowError: names a setting that Spark refuses; what it reads when it starts only cannot be set here.
    """
    for key, value in settings.items():
        try:
            if child.conf.get(key, None) != value:
                child.conf.set(key.removeprefix(_HADOOP), value)
        except SPARK_ERRORS as error:
            if condition_of(error) in _FIXED or "CANNOT_MODIFY_" in str(error):
                why = "Spark reads it when it starts: declare it in the properties of the cluster, or run a program"
                raise WorkflowError(f"process {process!r}: property {key}: {why} (engine: spark-submit)") from None
            raise WorkflowError(f"process {process!r}: property {key}: {explain(error)}") from error
