"""The catch-up as a plain PySpark loop: ``python -m benchmarks.catch_up_loop`` prints the seconds of its steps.

Arguments: the root of the data, where Spark runs, and more settings as JSON.
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import SparkSession

from benchmarks.flights import CONFS, QUERY, SCHEMA, THRESHOLD, hours


def main() -> None:
    """Reads and writes the same folders as the runs do."""
    data, where, more = sys.argv[1:]
    started = time.perf_counter()
    builder = SparkSession.builder.remote(where) if where.startswith("sc://") else SparkSession.builder.master(where)
    own = {"spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    for key, value in {**json.loads(more), **CONFS, **own}.items():
        if where.startswith("sc://") and not key.startswith("spark.sql."):
            continue  # what a server has since it started
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.range(1).count()
    ready = time.perf_counter()
    for hour in hours():
        folder = hour.strftime("%Y-%m-%d/%H")
        spark.read.schema(SCHEMA).json(f"{data}/raw/{folder}").createOrReplaceTempView("flights")
        rows = spark.sql(QUERY, args={"nominal_time": hour, "threshold": THRESHOLD})
        rows.write.parquet(f"{data}/delays/{folder}")
    done = time.perf_counter()
    spark.stop()
    print(json.dumps({"session": ready - started, "work": done - ready}))


if __name__ == "__main__":
    main()
