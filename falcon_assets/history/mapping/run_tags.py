"""Run tags: the instances that a run carries, and how it is to compute them.

Tags for people are visible in the UI; others have Dagster's prefix for hidden tags. Runs of earlier versions have them
as ``falcon/...``, and the history is kept for ever. Users may set any tag: malformed values are ignored. So use the
functions here to read them.
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
USE_LATEST = "falcon/use_latest"
"""``true`` on runs that use the latest definition, not the version recorded for their instances."""
EXECUTOR = "falcon/executor"
"""The executor that it runs on; absent: its cluster has none to choose from, or it needs none."""
INSTANCES = "falcon/instances"
NOMINAL_TIMES = f"{HIDDEN}falcon_nominal_times"
ATTEMPTS = f"{HIDDEN}falcon_attempts"
SLOTS = f"{HIDDEN}falcon_slots"
CLOCK = f"{HIDDEN}falcon_clock"
"""The simulated clock of the run; absent: the real time."""
FOREGROUND = "falcon/foreground"
INTERRUPTED = "falcon/interrupted"
"""The reason why the run ended early without being stopped by a user: its instances go on in the next run."""
BY_ITSELF = {PRIORITY: "-1"}
"""On runs that coordinators start: runs that users start have precedence."""

_NUMBERS = re.compile(r"[0-9]{1,9}( [0-9]{1,9})*")


def launch_tags(
    workload: Workload, launch: Launch, attempts: Sequence[int], clock: str, priority: int = 0
) -> dict[str, str]:
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
        **({EXECUTOR: launch.executor} if launch.executor else {}),
        **({LATE: "true"} if launch.late else {}),
        **({USE_LATEST: "true"} if launch.use_latest else {}),
        **({CLOCK: clock} if clock else {}),
        **BY_ITSELF,
        **({PRIORITY: str(priority - 1)} if priority else {}),
    }


def in_words(nominals: Sequence[datetime]) -> str:
    first, last = format_instant(nominals[0]), format_instant(nominals[-1])
    return first if first == last else f"{first} to {last} ({len(nominals)})"


def nominals_of(tags: Mapping[str, str]) -> tuple[datetime, ...]:
    """Returns the nominal times of a coordinator's run; empty: no coordinator made it."""
    if PROCESS not in tags or CLUSTER not in tags:
        return ()
    try:
        return tuple(map(parse_instant, _hidden(tags, NOMINAL_TIMES).split()))
    except ExpressionError:
        return ()


def attempts_of(tags: Mapping[str, str]) -> tuple[int, ...]:
    """Returns the intended attempts of the instances; empty: unknown, or a user repeated the run in Dagster's UI."""
    attempts = _numbers(tags, ATTEMPTS)
    return attempts if PARENT_RUN not in tags and len(attempts) == len(nominals_of(tags)) else ()


def uses_latest(tags: Mapping[str, str]) -> bool:
    return tags.get(USE_LATEST) == "true"


def slots_of(tags: Mapping[str, str], default: int) -> int:
    return next(iter(_numbers(tags, SLOTS)), default)


def shown_at(tags: Mapping[str, str], real_now: datetime) -> datetime:
    """Returns the time of the run's clock at a real time."""
    try:
        return Clock.from_tag(_hidden(tags, CLOCK)).at(real_now)
    except ExpressionError:
        return real_now


def _numbers(tags: Mapping[str, str], name: str) -> tuple[int, ...]:
    found = _NUMBERS.fullmatch(_hidden(tags, name))
    return tuple(map(int, found[0].split())) if found else ()


def _hidden(tags: Mapping[str, str], name: str) -> str:
    return tags.get(name) or tags.get(name.replace(f"{HIDDEN}falcon_", "falcon/"), "")
