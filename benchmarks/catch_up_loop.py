"""The catch-up as a plain PySpark loop: ``python -m benchmarks.catch_up_loop`` prints the seconds of its steps."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.flights import CONFS, QUERY, SCHEMA, THRESHOLD, hours


def main() -> None:
    """Reads and writes the same folders as the runs do."""
    data = Path(os.environ["FALCON_HOME"], "data")
    started = time.perf_counter()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for key, value in {**CONFS, "spark.sql.session.timeZone": "UTC", "spark.ui.showConsoleProgress": "false"}.items():
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
