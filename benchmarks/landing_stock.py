"""The landing benchmark's plain side: what Dagster's documentation tells to write, as a code location.

A sensor with Dagster's default interval looks for flags and requests a run per hour; an hourly asset reads the hour
with the session of ``dagster-pyspark`` and writes Parquet.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
from dagster_pyspark import PySparkResource

from benchmarks.landing_data import CONFS, QUERY, SCHEMA

DATA = Path(os.environ["LANDING_DATA"])
HOURS = dg.HourlyPartitionsDefinition(start_date=os.environ["LANDING_FIRST"], fmt="%Y-%m-%d-%H")


@dg.asset(partitions_def=HOURS)
def delays(context: dg.AssetExecutionContext, pyspark: PySparkResource) -> None:
    """The delays of an hour, by carrier."""
    spark = pyspark.spark_session
    spark.read.schema(SCHEMA).json(f"{DATA}/raw/{context.partition_key}").createOrReplaceTempView("flights")
    spark.sql(QUERY).write.mode("overwrite").parquet(f"{DATA}/delays/{context.partition_key}")


@dg.sensor(target=[delays], default_status=dg.DefaultSensorStatus.RUNNING)
def landed(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest]:
    """Requests the hours that have landed since the last tick."""
    found = sorted(flag.parent.name for flag in DATA.glob("raw/*/_SUCCESS"))
    for hour in found:
        if hour > (context.cursor or ""):
            yield dg.RunRequest(run_key=hour, partition_key=hour)
    if found:
        context.update_cursor(found[-1])


defs = dg.Definitions(
    assets=[delays],
    sensors=[landed],
    resources={"pyspark": PySparkResource(spark_config={"spark.master": "local[2]", **CONFS})},
)
