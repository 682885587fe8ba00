"""Tags that Dagster itself sets and reads; its constants are not public, and few of them are documented."""

from __future__ import annotations

HIDDEN = ".dagster/"
"""Tags with this prefix are stored like others, but hidden in the UI."""
PARENT_RUN = "dagster/parent_run_id"
PRIORITY = "dagster/priority"
"""The queue starts runs with a higher priority first; the default is 0."""
RUN_KEY = "dagster/run_key"
"""A sensor starts no second run with the same key."""
PARTITION = "dagster/partition"
RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
"""The first and the last partition of a run for several."""
LAUNCHED_BY = "user"
"""The UI shows it as "Launched by"."""
STARTED_BY = (
    *("dagster/schedule_name", "dagster/sensor_name", "dagster/tick", "dagster/backfill"),
    *(
        "dagster/auto_materialize",
        "dagster/auto_observe",
        "dagster/from_automation_condition",
        "dagster/reporting_user",
    ),
)
"""What started a run, where no user did."""
