"""Late data: which changes of consumed inputs matter, and when they are acted on (source: Falcon's late process).

An input instance that was read has *changed* when another version of it is there now, or a first version. It
*counts* when it came before the cut-off of its feed, or when a late rerun published it: then what set that off came in
time. What counts is acted on at the next check time of the workload; everything else came too late.

A check that passed while no collector ran is made up for by the next: nobody knows when something came meanwhile, so
it is acted on at once, and counts where the check, had it been made, would have found it before the cut-off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import LateProcess
from falcon_assets.planning.clock import is_set_back
from falcon_assets.planning.instance_record import LateChange
from falcon_assets.planning.late_inputs import Arrival
from falcon_assets.planning.retries import later


@dataclass(frozen=True)
class LateDataDecision:
    """What is to be done about a succeeded instance whose inputs changed.

    Attributes:
        rerun: All changes that count, where one of them is due; they are read by one rerun.
        due_at: When that is, or will be; None: no change counts.
        too_late: Changes after the cut-off, each with how long after it. None as long as the instance is to be run
            again anyway: it reads them too then.
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
    """Judges the changes of the late inputs of a succeeded instance.

    Args:
        late: What its workload declares.
        nominal: Its nominal time.
        cut_offs: The cut-off of the feed of each late input, by the name of the input.
        newest: The latest instance of the window of each late input, by the name of the input.
        arrivals: The changes.
        now: The time.
    """
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
    """The bound: the time of the last check, when the last cut-off of all instances of the late inputs passes.

    Both by the name of the input, see :func:`judge`; one input at least.
    """
    return max(later(instance, cut_offs[name]) for name, instance in newest.items())


def check_time(late: LateProcess, nominal: datetime, bound: datetime, came_at: datetime) -> datetime:
    """The first check at or after ``came_at``; the bound where no other check is left before it.

    ``backoff`` checks at ``nominal + k * delay``, ``exp-backoff`` at ``nominal + delay * (2**k - 1)``, k = 1, 2 ...,
    ``final`` not at all; and each once more at the bound, after which there is none. A month is 30 days long.
    """
    if late.policy == "final":
        return bound
    delay = late.delay.length
    steps = max(-((nominal - came_at) // delay), 1)  # rounded up
    if late.policy == "exp-backoff":
        steps = (1 << steps.bit_length()) - 1
    return min(later(nominal, delay, steps), bound)


def too_late_text(workload: str, nominal: datetime, change: LateChange, after: timedelta) -> str:
    """That a change came too late, in words."""
    said = timedelta(seconds=int(after.total_seconds()))
    return (
        f"{change.feed} {format_instant(change.instance)} changed {said} after its cut-off: "
        f"{workload} {format_instant(nominal)} is not run again"
    )
