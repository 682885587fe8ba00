"""The tags by which a run says which instances it carries, and for whom.

What people read and filter by is visible in the UI; what only we need has Dagster's prefix for hidden tags. Runs of
earlier versions have it as ``falcon/...``, and history is read for ever; and anybody may tag runs as they like: what is
not of our form says nothing. So ask the functions here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from falcon_assets.errors import ExpressionError
from falcon_assets.history.dagster_internals.tags import HIDDEN, PARENT_RUN, PRIORITY, RANGE_END, RANGE_START
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_record import Launch
from falcon_assets.planning.workloads import Workload

PROCESS = "falcon/process"
CLUSTER = "falcon/cluster"
LATE = "falcon/late"
"""``true`` on runs that run instances again because of late data."""
USE_LATEST = "falcon/use_latest"
"""``true`` on runs that compute their instances with the latest definition, not with the version that these have."""
INSTANCES = "falcon/instances"
"""The first and the last nominal time of the run, and how many there are: for people, in the list of runs."""
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
"""Why the run ended before its time, where nobody stopped the run itself: its instances go on in the next run."""
BY_ITSELF = {PRIORITY: "-1"}
"""On runs that nobody asked for: those that a person starts go before them."""

_NUMBERS = re.compile(r"[0-9]{1,9}( [0-9]{1,9})*")


def launch_tags(workload: Workload, launch: Launch, attempts: Sequence[int], clock: str) -> dict[str, str]:
    """The tags of a run that carries the instances of ``launch``."""
    partitions = workload.partitions
    first, last = (
        key_of(partitions.timeline, partitions.partition_of(nominal))
        for nominal in (launch.nominals[0], launch.nominals[-1])
    )
    return {
        PROCESS: workload.name,
        CLUSTER: workload.cluster,
        INSTANCES: in_words(launch.nominals),
        NOMINAL_TIMES: " ".join(map(format_instant, launch.nominals)),
        ATTEMPTS: " ".join(map(str, attempts)),
        SLOTS: str(launch.slots),
        RANGE_START: first,
        RANGE_END: last,
        **({LATE: "true"} if launch.late else {}),
        **({USE_LATEST: "true"} if launch.use_latest else {}),
        **({CLOCK: clock} if clock else {}),
        **BY_ITSELF,
    }


def in_words(nominals: Sequence[datetime]) -> str:
    """The first and the last of them, and how many they are."""
    first, last = format_instant(nominals[0]), format_instant(nominals[-1])
    return first if first == last else f"{first} to {last} ({len(nominals)})"


def nominals_of(tags: Mapping[str, str]) -> tuple[datetime, ...]:
    """The instances that the run was made for; none where no coordinator made it."""
    if PROCESS not in tags or CLUSTER not in tags:
        return ()
    try:
        return tuple(map(parse_instant, _hidden(tags, NOMINAL_TIMES).split()))
    except ExpressionError:
        return ()


def attempts_of(tags: Mapping[str, str]) -> tuple[int, ...]:
    """Which attempt the run is for each of :func:`nominals_of`; none where nobody counted.

    A run that a person repeats in Dagster's UI carries the tags of the first one, and is an attempt of its own.
    """
    attempts = _numbers(tags, ATTEMPTS)
    return attempts if PARENT_RUN not in tags and len(attempts) == len(nominals_of(tags)) else ()


def uses_latest(tags: Mapping[str, str]) -> bool:
    """Whether the run computes its instances with the latest definition, whatever version they have."""
    return tags.get(USE_LATEST) == "true"


def slots_of(tags: Mapping[str, str], default: int) -> int:
    """How many of the instances may run at once; ``default`` where the run does not say."""
    return next(iter(_numbers(tags, SLOTS)), default)


def shown_at(tags: Mapping[str, str], real_now: datetime) -> datetime:
    """What the clock that the run lives by showed at a real time."""
    try:
        return Clock.from_tag(_hidden(tags, CLOCK)).at(real_now)
    except ExpressionError:
        return real_now


def _numbers(tags: Mapping[str, str], name: str) -> tuple[int, ...]:
    found = _NUMBERS.fullmatch(_hidden(tags, name))
    return tuple(map(int, found[0].split())) if found else ()


def _hidden(tags: Mapping[str, str], name: str) -> str:
    return tags.get(name) or tags.get(name.replace(f"{HIDDEN}falcon_", "falcon/"), "")
