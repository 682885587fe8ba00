"""The tags by which a run says which instances it carries, and for whom.

What people read and filter by is visible in the UI; what only we need has Dagster's prefix for hidden tags. Runs of
earlier versions have it as ``falcon/...``, and history is read for ever: ask the functions here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.orchestration.dagster_internals.tags import HIDDEN, PARENT_RUN, PRIORITY, RANGE_END, RANGE_START
from falcon_assets.orchestration.mapping.partitions import key_of
from falcon_assets.planning.instances.process_partitions import ProcessPartitions
from falcon_assets.planning.rules.situation import Launch

PROCESS = "falcon/process"
CLUSTER = "falcon/cluster"
LATE = "falcon/late"
"""``true`` on runs that run instances again because of late data."""
NOMINAL_TIMES = f"{HIDDEN}falcon_nominal_times"
"""The instances of a run that a coordinator made: their nominal times, oldest first."""
ATTEMPTS = f"{HIDDEN}falcon_attempts"
"""Which attempt the run is meant to be, for each of its instances."""
SLOTS = f"{HIDDEN}falcon_slots"
"""How many of the instances may run at once."""
CLOCK = f"{HIDDEN}falcon_clock"
"""The simulated clock that the run lives by; none = the real one."""
FOREGROUND = "falcon/foreground"
"""Set on runs of ``falcon run``: they live in its process and end with it."""
INTERRUPTED = "falcon/interrupted"
"""Why the run ended before its time, where nobody stopped the run itself: its instances go on in the next one."""
BY_ITSELF = {PRIORITY: "-1"}
"""On runs that nobody asked for: those that a person starts go before them."""


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
        **BY_ITSELF,
    }


def nominals_of(tags: Mapping[str, str]) -> tuple[datetime, ...]:
    """The instances that the run was made for; none where no coordinator made it."""
    return tuple(map(parse_instant, _hidden(tags, NOMINAL_TIMES).split()))


def attempts_of(tags: Mapping[str, str]) -> tuple[int, ...]:
    """Which attempt the run is for each of :func:`nominals_of`; none where nobody counted.

    A run that a person repeats in Dagster's UI carries the tags of the first one, and is an attempt of its own.
    """
    return () if PARENT_RUN in tags else tuple(map(int, _hidden(tags, ATTEMPTS).split()))


def slots_of(tags: Mapping[str, str], default: int) -> int:
    """How many of the instances may run at once; ``default`` where the run does not say."""
    return int(_hidden(tags, SLOTS) or default)


def clock_of(tags: Mapping[str, str]) -> str:
    """The simulated clock that the run lives by; empty: the real one."""
    return _hidden(tags, CLOCK)


def _hidden(tags: Mapping[str, str], name: str) -> str:
    return tags.get(name) or tags.get(name.replace(f"{HIDDEN}falcon_", "falcon/"), "")
