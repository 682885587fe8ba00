"""Late data: which changes of consumed inputs matter, and when they are acted on (source: Falcon's late process).

An input instance that was read has *changed* when another version of it, or a first one, is there now. The change
*counts* when it arrived before the cut-off of its feed, or when a late rerun published it: its cause was in time.
Changes that count are acted on at the next check time of the workload; all others are too late.

A check that passed while no collector ran is made up for by the next: the time of arrival is not known, so the change
is acted on at once, and counts where the check would have found it before the cut-off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import LateProcess
from falcon_assets.planning.clock import is_set_back, later
from falcon_assets.planning.instance_record import LateChange
from falcon_assets.planning.late_inputs import Arrival


@dataclass(frozen=True)
class LateDataDecision:
    """Decides about a succeeded instance whose inputs changed.

    Attributes:
        rerun: All changes that count, once one of them is due; one rerun reads them all.
        due_at: When the first is or will be due; None: no change counts.
        too_late: Changes after the cut-off, with their delay. None while a rerun is pending: it reads them too.
    """

    rerun: tuple[LateChange, ...]
    due_at: datetime | None
    too_late: tuple[tuple[LateChange, timedelta], ...]


def judge(
    late: LateProcess,
    nominal: datetime,
    cut_offs: Mapping[str, timedelta],
    newest: Mapping[str, datetime],
    arrivals: Iterable[Arrival],
    now: datetime,
) -> LateDataDecision:
    """Judges the changes of the late inputs of a succeeded instance; mappings are by the name of the input."""
    bound = last_check(cut_offs, newest)
    counting: list[LateChange] = []
    too_late: list[tuple[LateChange, timedelta]] = []
    due: list[datetime] = []
    for one in arrivals:
        cut_off = later(one.change.instance, cut_offs[one.change.input])
        check = one.seen_at if one.by_late_rerun else check_time(late, nominal, bound, one.came_at)
        if one.by_late_rerun or one.seen_at <= cut_off or one.came_at <= check <= cut_off:
            counting.append(one.change)
            # Nobody knows which check is the first one after a time that is yet to come once more.
            due.append(now if is_set_back(one.seen_at, now) else max(check, one.seen_at))
        else:
            too_late.append((one.change, one.seen_at - cut_off))
    due_at = min(due, default=None)
    if due_at is None:
        return LateDataDecision((), None, tuple(too_late))
    return LateDataDecision(tuple(counting) if due_at <= now else (), due_at, ())


def last_check(cut_offs: Mapping[str, timedelta], newest: Mapping[str, datetime]) -> datetime:
    """Returns the bound: when the last cut-off of all late inputs passes."""
    return max(later(instance, cut_offs[name]) for name, instance in newest.items())


def check_time(late: LateProcess, nominal: datetime, bound: datetime, came_at: datetime) -> datetime:
    """Returns the first check at or after ``came_at``; the bound where no other check is left before it.

    ``backoff`` checks at ``nominal + k * delay``, ``exp-backoff`` at ``nominal + delay * (2**k - 1)``, k = 1, 2 ...,
    ``final`` not at all; all check once more, for the last time, at the bound. A month is 30 days long.
    """
    if late.policy == "final":
        return bound
    delay = late.delay.length
    steps = max(-((nominal - came_at) // delay), 1)  # rounded up
    if late.policy == "exp-backoff":
        steps = (1 << steps.bit_length()) - 1
    return min(later(nominal, delay, steps), bound)


def too_late_text(workload: str, nominal: datetime, change: LateChange, after: timedelta) -> str:
    said = timedelta(seconds=int(after.total_seconds()))
    return (
        f"{change.feed} {format_instant(change.instance)} changed {said} after its cut-off: "
        f"{workload} {format_instant(nominal)} is not run again"
    )
