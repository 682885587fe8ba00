"""Adds up the hours of a day.

A workflow of the ``pyspark`` engine is a function ``run``: ``inputs`` holds one DataFrame per input of the process,
``instance`` says what is being computed. It returns the output (or a dict of them, by output name).
"""

from pyspark.sql import functions as F


def run(spark, inputs, instance):
    day = F.lit(instance.nominal_time.date())
    return (
        inputs["hours"]
        .groupBy("origin", "carrier")
        .agg(
            F.sum("flights").alias("flights"),
            F.sum("departed").alias("departed"),
            F.sum("delayed").alias("delayed"),
            F.round(F.sum("delay_minutes"), 1).alias("delay_minutes"),
        )
        .withColumn("day", day)
    )
