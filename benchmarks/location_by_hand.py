"""The assets of :mod:`benchmarks.entities`, written by hand in Dagster the way an engineer writes many alike: in loops.

``python -m benchmarks load`` compares them with those of the entities, key by key, before it measures anything.
"""

# No postponed annotations here: Dagster reads that of `context`.
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource

from benchmarks.entities import FEEDS, PROCESSES

warnings.simplefilter("ignore", dg.BetaWarning)  # of the mapping below, a line on every start

HALF = FEEDS // 2
CLUSTERS = PROCESSES // HALF
HOURS_OF_2013 = dg.TimeWindowPartitionsDefinition(
    start="2013-01-01T00:00Z",
    end="2014-01-01T00:00Z",
    fmt="%Y-%m-%dT%H:%MZ",
    timezone="UTC",
    cron_schedule="0 * * * *",
    end_offset=1,
)
SAME_HOUR = dg.TimeWindowPartitionMapping(allow_nonexistent_upstream_partitions=True)


def metadata_of_feed(number: int) -> dict[str, Any]:
    return {
        "falcon/frequency": "hours(1)",
        "falcon/timezone": "UTC",
        "falcon/validity_start": "2013-01-01T00:00:00+00:00",
        "falcon/validity_end": "2014-01-01T00:00:00+00:00",
        "falcon/location": f"/events/{number}/${{YEAR}}/${{MONTH}}/${{DAY}}/${{HOUR}}",
        "falcon/availability_flag": "_SUCCESS",
        "falcon/late_cut_off": "hours(6)",
        "falcon/sla": "low hours(2), high hours(4)",
        "falcon/retention": "delete after days(90)",
        "falcon/groups": "landing",
        "tag/owner": "etl",
        "tag/classification": "public",
    }


def landing_feed(number: int, cluster: int) -> dg.AssetSpec:
    return dg.AssetSpec(
        key=[f"cluster-{cluster}", f"feed-{number}"],
        description=f"hourly events of source {number}",
        group_name="landing",
        tags={
            "owner": "etl",
            "classification": "public",
            "falcon/cluster": f"cluster-{cluster}",
            "falcon/colo": "east",
        },
        owners=["team:etl", "team:data"],
        kinds={"json", f"cluster-{cluster}"},
        partitions_def=HOURS_OF_2013,
        metadata={**metadata_of_feed(number), "falcon/collector": f"cluster_{cluster}__collector"},
    )


def process(number: int) -> dg.AssetsDefinition:
    cluster, position = divmod(number, HALF)
    written = FEEDS - HALF + position
    read = position if position % 10 == 0 else written - 1
    spark = f"spark__cluster_{cluster}"

    @dg.multi_asset(
        name=f"cluster_{cluster}__process_{number}",
        specs=[
            dg.AssetSpec(
                key=[f"cluster-{cluster}", f"feed-{written}"],
                description=f"hourly events of source {written}",
                group_name="landing",
                tags={
                    "owner": "etl",
                    "classification": "public",
                    "falcon/cluster": f"cluster-{cluster}",
                    "falcon/colo": "east",
                    "falcon/process": f"process-{number}",
                    "falcon/pipeline": f"pipeline-{number % 20}",
                },
                owners=["team:etl", "team:data"],
                kinds={"json", "spark", f"cluster-{cluster}"},
                partitions_def=HOURS_OF_2013,
                metadata={
                    **metadata_of_feed(written),
                    "falcon/process": f"process-{number}",
                    "falcon/process_frequency": "hours(1)",
                    "falcon/pipelines": f"pipeline-{number % 20}",
                    "falcon/workflow": "spark-sql workflows/copy.sql",
                    "falcon/inputs": f"read = feed-{read} now(0,0)..now(0,0)",
                    "falcon/order": "FIFO, 2 at once",
                    "falcon/retry": "periodic, 3 more attempts, minutes(10) apart",
                },
                deps=[dg.AssetDep([f"cluster-{cluster}", f"feed-{read}"], partition_mapping=SAME_HOUR)],
                skippable=True,
            )
        ],
        backfill_policy=dg.BackfillPolicy.single_run(),
        op_tags={"falcon/process": f"process-{number}", "falcon/cluster": f"cluster-{cluster}"},
        required_resource_keys={spark},
    )
    def compute(context: dg.AssetExecutionContext) -> Iterator[dg.AssetMaterialization]:
        session = getattr(context.resources, spark).spark_session
        for key in context.partition_keys:
            hour = f"{key[:4]}/{key[5:7]}/{key[8:10]}/{key[11:13]}"
            rows = session.read.json(f"data/cluster-{cluster}/events/{read}/{hour}")
            rows.write.json(f"data/cluster-{cluster}/events/{written}/{hour}")
            yield dg.AssetMaterialization([f"cluster-{cluster}", f"feed-{written}"], partition=key)

    return compute


def job(number: int) -> "dg.UnresolvedAssetJobDefinition":
    cluster, position = divmod(number, HALF)
    return dg.define_asset_job(
        name=f"cluster_{cluster}__process_{number}_job",
        selection=dg.AssetSelection.assets([f"cluster-{cluster}", f"feed-{FEEDS - HALF + position}"]),
        tags={"falcon/process": f"process-{number}", "falcon/cluster": f"cluster-{cluster}"},
    )


def spark(cluster: int) -> LazyPySparkResource:
    working = Path(os.environ["FALCON_HOME"]) / f"data/cluster-{cluster}/.falcon/working"
    return LazyPySparkResource(
        spark_config={
            "spark.master": "local[2]",
            "spark.app.name": f"falcon-cluster-{cluster}",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": f"{working}/spark-warehouse",
            "spark.ui.enabled": "false",
        }
    )


landing = [landing_feed(number, cluster) for number in range(FEEDS - HALF) for cluster in range(CLUSTERS)]
defs = dg.Definitions(
    assets=[*landing, *map(process, range(PROCESSES))],
    jobs=[job(number) for number in range(PROCESSES)],
    resources={f"spark__cluster_{cluster}": spark(cluster) for cluster in range(CLUSTERS)},
    executor=dg.in_process_executor,
)
