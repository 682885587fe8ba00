"""Schemas that are told without Spark are those that Spark tells."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.model.test_spark_schema import RIGHT, WRONG


@pytest.mark.soak
def test_spark_says_the_same(spark: SparkSession) -> None:
    def reads(schema: str) -> bool:
        try:
            spark.read.schema(schema)
        except PySparkException:
            return False
        return True

    assert [one for one in RIGHT if not reads(one)] == []
    assert [one for one in WRONG if reads(one)] == []
