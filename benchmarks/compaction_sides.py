"""One compaction, in a process of its own: ``python -m benchmarks.compaction_sides SIDE SOURCE TARGET``."""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
from pathlib import Path

SORT = ("user_id",)
MB = 1 << 20


def falcon(source: Path, target: Path) -> float:
    from falcon_assets.features.compaction.engine import (  # noqa: PLC0415 - Spark's side has not to load it
        CompactionPlan,
        NewFiles,
        compact,
    )
    from falcon_assets.features.compaction.row_files import DataFile  # noqa: PLC0415 - said above

    files = [DataFile(one.name, one.stat().st_size, partial(one.open, "rb")) for one in source.glob("*.parquet")]
    target.mkdir()
    place = NewFiles(lambda name: (target / name).open("wb"), lambda name: (target / name).open("rb"))
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=target.parent) as spill:
        compact(files, CompactionPlan("parquet", SORT, 32 * MB), place, Path(spill))
    return time.perf_counter() - started


def spark(source: Path, target: Path) -> float:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the other side has not to load it

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.range(1).count()  # its first job takes seconds
    started = time.perf_counter()
    rows = session.read.option("mergeSchema", "true").parquet(str(source))
    size = sum(one.stat().st_size for one in source.iterdir())
    parts = max(1, round(size / (32 * MB)))
    rows.repartitionByRange(parts, *SORT).sortWithinPartitions(*SORT).write.parquet(str(target))
    seconds = time.perf_counter() - started
    session.stop()
    return seconds


if __name__ == "__main__":
    side, source, target = sys.argv[1:]
    print(({"falcon": falcon, "spark": spark}[side])(Path(source), Path(target)))
