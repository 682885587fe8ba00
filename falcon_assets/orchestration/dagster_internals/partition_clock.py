"""Which partitions exist by now: Dagster goes by the real time, and has no way to be told another."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

# Its functions look up the present time here; nothing public tells them another.
from dagster._core.definitions.partitions import context

# What they look up by default, for whoever goes by the real time again.
from dagster._time import get_current_datetime


def partitions_exist_by(now: Callable[[], datetime] | None) -> None:
    """Lets this process take that for the present when it asks which partitions of a timeline exist.

    Nothing else goes by it: runs, ticks and events keep the real time. Whoever asks about a certain moment, as a
    backfill does about its own, gets what existed then.

    Args:
        now: Says the time; None: the real one.
    """
    vars(context)["get_current_datetime"] = now or get_current_datetime  # what its functions look up when called
