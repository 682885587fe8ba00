"""Tags by which Dagster itself knows runs; its constants are not public, and it documents few of them."""

from __future__ import annotations

HIDDEN = ".dagster/"
"""Tags that begin so are not shown in the UI, and kept like others."""
PARENT_RUN = "dagster/parent_run_id"
"""On runs that repeat another run."""
PRIORITY = "dagster/priority"
"""The queue starts runs with a higher priority first; none = 0."""
RUN_KEY = "dagster/run_key"
"""A sensor starts no second run with the same key."""
PARTITION = "dagster/partition"
"""The partition of a run for one."""
RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
"""The first and the last partition of a run over several."""
