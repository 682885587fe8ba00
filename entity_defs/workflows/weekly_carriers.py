"""Ranks the carriers of a week: an ordinary Spark program, started by spark-submit.

It reads the paths that it is given and writes the output folder itself; the folder is published when it ends well.
"""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", required=True, help="input paths, separated by commas")
    parser.add_argument("--output", required=True)
    parser.add_argument("--week", required=True)
    args = parser.parse_args()

    spark = SparkSession.builder.getOrCreate()
    ranked = (
        spark.read.parquet(*args.days.split(","))
        .groupBy("carrier")
        .agg(
            F.sum("flights").alias("flights"),
            F.round(F.sum("delay_minutes") / F.sum("departed"), 1).alias("mean_delay"),
        )
        .withColumn("week", F.lit(args.week))
        .orderBy(F.desc("mean_delay"))
    )
    ranked.coalesce(1).write.csv(args.output, header=True)
    spark.stop()


if __name__ == "__main__":
    main()
