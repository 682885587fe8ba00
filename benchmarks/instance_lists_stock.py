"""The assets of Dagster that are asked about: one for each process, with as many partitions as it has instances."""

from datetime import datetime

import dagster as dg

from benchmarks.instance_lists import FIRST, LAST, PROCESSES

FIVE_MINUTES = dg.TimeWindowPartitionsDefinition(
    start=datetime.fromisoformat(FIRST.replace("Z", "")),
    end=datetime.fromisoformat(LAST.replace("05:15Z", "05:20")),
    cron_schedule="*/5 * * * *",
    fmt="%Y-%m-%dT%H:%MZ",
)
KEYS = [f"work-{number:02d}" for number in range(PROCESSES)]

defs = dg.Definitions([dg.AssetSpec(["primary", name], partitions_def=FIVE_MINUTES) for name in KEYS])
