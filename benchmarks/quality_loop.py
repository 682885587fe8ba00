"""Measures one side or all of them in one Spark session: ``python -m benchmarks.quality_loop DATA ROUNDS``.

Prints, as JSON, the seconds of each side in each round. Great Expectations is in the folder QUALITY_LIBRARY.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from pyspark.sql import DataFrame, SparkSession

from benchmarks.quality import ROWS, SETTINGS
from falcon_assets.features.quality.measuring import CheckedInstance, InstanceMeasuring
from falcon_assets.features.quality.verdict import judged
from falcon_assets.model.quality_check import QualityCheck
from falcon_assets.model.quality_rules import AnyCheck

NOMINAL = datetime(2013, 1, 2, tzinfo=UTC)
ITEMS = tuple(f"item-{number}" for number in range(50))
CHECKS: list[dict[str, Any]] = [
    {"rule": "row_count", "min": 1_000_000},
    {"rule": "not_null", "columns": ["id"]},
    {"rule": "not_null", "columns": ["item"]},
    {"rule": "not_null", "columns": ["n"], "max_share": 0.5},
    {"rule": "unique", "columns": ["id"]},
    {"rule": "in_range", "column": "n", "min": 0, "max": 900},
    {"rule": "in_range", "column": "price", "min": 0},
    {"rule": "in_range", "column": "at", "min": "2013-01-01"},
    {"rule": "in_set", "column": "item", "values": list(ITEMS[:49])},
    {"rule": "in_set", "column": "flag", "values": [True, False]},
    {"rule": "matching", "column": "code", "pattern": "^[A-F0-9]{8}$"},
    {"rule": "freshness", "column": "at", "within": "days(2)"},
]
BY_HAND = f"""
count(1) AS a0, count_if(id IS NULL) AS a1, count_if(item IS NULL) AS a2, count_if(n IS NULL) AS a3,
count(id) - count(DISTINCT id) AS a4, count_if(n < 0 OR n > 900) AS a5, count_if(price < 0) AS a6,
count_if(at < TIMESTAMP '2013-01-01 00:00:00 UTC') AS a7,
count_if(item NOT IN ({", ".join(f"'{one}'" for one in ITEMS[:49])})) AS a8, count_if(flag NOT IN (true, false)) AS a9,
count_if(NOT code RLIKE '^[A-F0-9]{{8}}$') AS a10, max(at) AS a11
"""


def write(spark: SparkSession, path: str) -> None:
    """A table with some of everything that the checks look for."""
    spark.range(ROWS).selectExpr(
        "id",
        "concat('item-', id % 50) AS item",
        "IF(id % 10 = 0, NULL, CAST(id % 1000 AS int)) AS n",
        "CAST(id % 100000 AS double) / 7 AS price",
        "timestamp_seconds(1356998400 + id % 86400) AS at",
        "upper(right(concat('0000000', hex(id)), 8)) AS code",
        "id % 3 = 0 AS flag",
    ).repartition(4).write.parquet(path)


def ours(spark: SparkSession, data: DataFrame) -> list[Any]:
    """As a run does, without reading and recording."""
    checks: tuple[QualityCheck, ...] = TypeAdapter(tuple[AnyCheck, ...]).validate_python(
        [{**check, "name": f"check_{number}"} for number, check in enumerate(CHECKS)]
    )
    measuring = InstanceMeasuring(spark, data, CheckedInstance("sales", "primary", NOMINAL), lambda _: data)
    found = list(judged(checks, measuring.measure(checks), NOMINAL, {}))
    return [one.figures.get("violations", 0) for one in found]


def by_hand(spark: SparkSession, data: DataFrame) -> list[Any]:
    data.createOrReplaceTempView("data")
    row = spark.sql(f"SELECT {BY_HAND} FROM data").collect()[0]
    return [0, *row[1:11], 0]


def library(data: DataFrame) -> Callable[[], list[Any]]:
    """The same with Great Expectations; what can be prepared once is."""
    sys.path.append(os.environ["QUALITY_LIBRARY"])
    import great_expectations as gx  # noqa: PLC0415 - it is found only now
    import great_expectations.expectations as gxe  # noqa: PLC0415 - as above

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    batches = (
        context.data_sources.add_spark("spark").add_dataframe_asset("data").add_batch_definition_whole_dataframe("all")
    )
    suite = context.suites.add(gx.ExpectationSuite("checks"))
    for expectation in (
        gxe.ExpectTableRowCountToBeBetween(min_value=1_000_000),
        gxe.ExpectColumnValuesToNotBeNull(column="id"),
        gxe.ExpectColumnValuesToNotBeNull(column="item"),
        gxe.ExpectColumnValuesToNotBeNull(column="n", mostly=0.5),
        gxe.ExpectColumnValuesToBeUnique(column="id"),
        gxe.ExpectColumnValuesToBeBetween(column="n", min_value=0, max_value=900),
        gxe.ExpectColumnValuesToBeBetween(column="price", min_value=0),
        gxe.ExpectColumnValuesToBeBetween(column="at", min_value=datetime(2013, 1, 1)),
        gxe.ExpectColumnValuesToBeInSet(column="item", value_set=list(ITEMS[:49])),
        gxe.ExpectColumnValuesToBeInSet(column="flag", value_set=[True, False]),
        gxe.ExpectColumnValuesToMatchRegex(column="code", regex="^[A-F0-9]{8}$"),
        gxe.ExpectColumnMaxToBeBetween(column="at", min_value=datetime(2012, 12, 31)),
    ):
        suite.add_expectation(expectation)
    validation = context.validation_definitions.add(gx.ValidationDefinition(name="all", data=batches, suite=suite))

    def run() -> list[Any]:
        found = validation.run(batch_parameters={"dataframe": data}, result_format="BASIC")
        return [one.result.get("unexpected_count", 0) for one in found.results]

    return run


def profile(spark: SparkSession, data: DataFrame) -> None:
    InstanceMeasuring(spark, data, CheckedInstance("sales", "primary", NOMINAL), lambda _: data).measure(
        (), profile=True
    )


def main(path: str, rounds: int) -> None:
    builder = SparkSession.builder
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    write(spark, path)
    data = spark.read.parquet(path)
    expected = by_hand(spark, data)
    with_library = library(data)
    sides: dict[str, Callable[[], Any]] = {
        "ours": lambda: ours(spark, data),
        "by_hand": lambda: by_hand(spark, data),
        "library": with_library,
    }
    for name, side in sides.items():  # warms up, too
        if sorted(side()) != sorted(expected):
            raise SystemExit(f"{name} finds {side()}, and not {expected}")
    sides["profile"] = lambda: profile(spark, data)
    sides["summary"] = lambda: data.summary().collect()
    seconds: list[dict[str, float]] = []
    for _ in range(rounds):
        seconds.append({})
        for name, side in sides.items():
            begun = time.perf_counter()
            side()
            seconds[-1][name] = time.perf_counter() - begun
    spark.stop()
    sys.stdout.write(f"{json.dumps(seconds)}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
