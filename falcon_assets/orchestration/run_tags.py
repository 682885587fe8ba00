"""The tags by which a run says which instances it carries, and for whom."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.orchestration.partitions import key_of
from falcon_assets.planning.coordination import Launch
from falcon_assets.planning.process_partitions import ProcessPartitions

PROCESS = "falcon/process"
CLUSTER = "falcon/cluster"
NOMINAL_TIMES = "falcon/nominal_times"
"""The instances of a run that a coordinator made: their nominal times, oldest first."""
ATTEMPTS = "falcon/attempts"
"""Which attempt the run is meant to be, for each of its instances."""
SLOTS = "falcon/slots"
"""How many of the instances may run at once."""
LATE = "falcon/late"
"""``true`` on runs that run instances again because of late data."""
CLOCK = "falcon/clock"
"""The simulated clock that the run lives by; none = the real one."""
FOREGROUND = "falcon/foreground"
"""Set on runs of ``falcon run``: they live in its process and end with it."""
PARENT = "dagster/parent_run_id"
"""Dagster's, on runs that repeat another one."""
RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"


def launch_tags(
    process: str, cluster: str, partitions: ProcessPartitions, launch: Launch, clock: str
) -> dict[str, str]:
    """The tags of a run that carries the instances of ``launch``."""
    first, last = (
        key_of(partitions.timeline, partitions.partition_of(nominal))
        for nominal in (launch.nominals[0], launch.nominals[-1])
    )
    return {
        PROCESS: process,
        CLUSTER: cluster,
        NOMINAL_TIMES: " ".join(map(format_instant, launch.nominals)),
        SLOTS: str(launch.slots),
        RANGE_START: first,
        RANGE_END: last,
        **({LATE: "true"} if launch.late else {}),
        **({CLOCK: clock} if clock else {}),
    }


def nominals_of(tags: Mapping[str, str]) -> tuple[datetime, ...]:
    """The instances that the run was made for; none where no coordinator made it."""
    return tuple(map(parse_instant, tags.get(NOMINAL_TIMES, "").split()))


def attempts_of(tags: Mapping[str, str]) -> tuple[int, ...]:
    """Which attempt the run is for each of :func:`nominals_of`; none where nobody counted.

    A run that a person repeats in Dagster's UI carries the tags of the first one, and is an attempt of its own.
    """
    return () if PARENT in tags else tuple(map(int, tags.get(ATTEMPTS, "").split()))
