"""Which of the ready instances start now: stretches of neighbours, a run for each, as far as slots and budget last."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

from falcon_assets.planning.instances.reason import Reason
from falcon_assets.planning.rules.backlog import Backlog, first_reason
from falcon_assets.planning.rules.own_outputs import OwnChain
from falcon_assets.planning.rules.situation import Launch, Situation
from falcon_assets.planning.rules.waiting import (
    TAKEN,
    InputsMissing,
    NewerIsReady,
    NoFreeSlot,
    OptionalInputPending,
    RerunPending,
    RetryDelayed,
    TurnPending,
    gives_up,
)

LONGEST_LAUNCH = 100
"""How many instances one run may be given."""

Ready: TypeAlias = Sequence[tuple[int, datetime]]
"""Ready instances in the order of the workload: index in the timeline, and nominal time."""


def without_older(at: Situation, ready: Ready) -> tuple[Ready, list[tuple[datetime, Reason]]]:
    """What is left of the ready instances where only the newest runs, and why the others are skipped."""
    if at.workload.order != "LAST_ONLY":
        return ready, []
    first_runs = [one for one in ready if one[1] not in at.requests]
    if not first_runs:
        return ready, []
    newer = NewerIsReady(first_runs[0][1])
    # What has run before is asked for by name: it is neither too old nor in the way of others.
    left = [one for one in ready if one is first_runs[0] or one[1] in at.requests]
    return left, [(nominal, newer) for _, nominal in first_runs[1:]]


def launches(backlog: Backlog, ready: Ready, given_up: Collection[datetime]) -> list[Launch]:
    """Shares the free slots out among stretches of ready instances; the backlog is told why the others wait.

    Args:
        backlog: Where the instances are from.
        ready: The ready instances.
        given_up: Instances that are not to run, whatever comes before them.
    """
    at = backlog.at
    ready = _without_rivals(backlog, ready)
    free, budget, taken = at.at_once - at.slots_in_use, at.budget, 0
    found = []
    while taken < len(ready) and free > 0 and budget > 0:
        longest = min(LONGEST_LAUNCH, budget)
        stretch = _stretch(at, ready, taken, longest)
        taken += len(stretch)
        slots = min(free, len(stretch))
        if at.chain and at.newer is None:  # in a run they go one after the other
            taboo = {*given_up, *(nominal for _, nominal in ready)}
            stretch, slots = [*stretch, *_following(backlog, at.chain, stretch, longest, taboo)], 1
            for nominal in stretch:
                backlog.waiting.pop(nominal, None)
        found.append(Launch(tuple(sorted(stretch)), slots, *_way(at, stretch[0])))
        free -= slots
        budget -= len(stretch)
    parallel = at.workload.parallel
    reason: Reason = NoFreeSlot(parallel, at.at_once < parallel) if free <= 0 else TurnPending(at.budget)
    for _, nominal in ready[taken:]:
        backlog.waiting[nominal] = reason
    return found


def _without_rivals(backlog: Backlog, ready: Ready) -> Ready:
    """What is left where each version of an input is used once: the first, and what is asked for by name."""
    at = backlog.at
    first = next((nominal for _, nominal in ready if nominal not in at.requests), None)
    if at.newer is None or first is None:
        return ready
    missing = tuple(at.newer.left_to(first))
    left = [one for one in ready if one[1] == first or one[1] in at.requests]
    for nominal in {nominal for _, nominal in ready} - {nominal for _, nominal in left}:
        over = gives_up(at, nominal, at.records.get(nominal))
        backlog.waiting[nominal] = InputsMissing(missing, 0, over)
    return left


def _way(at: Situation, nominal: datetime) -> tuple[bool, bool]:
    """Whether it runs as late data is run again, and with the present definition."""
    request = at.requests.get(nominal)
    return (request.is_late, request.use_latest) if request else (False, False)


def _stretch(at: Situation, ready: Ready, first: int, longest: int) -> list[datetime]:
    """The instances from ``first`` on that are neighbours in the timeline and run the same way."""
    last, way = first, _way(at, ready[first][1])
    while (
        last + 1 < min(len(ready), first + longest)
        and abs(ready[last + 1][0] - ready[last][0]) == 1
        and _way(at, ready[last + 1][1]) == way
    ):
        last += 1
    return [nominal for _, nominal in ready[first : last + 1]]


def _following(
    backlog: Backlog, chain: OwnChain, stretch: Sequence[datetime], longest: int, taboo: Collection[datetime]
) -> Iterator[datetime]:
    """The instances after a stretch that are ready once those before them in the run are done."""
    at, written = backlog.at, chain.written(stretch)
    first = at.timeline.index_at_or_before(max(stretch)) + 1
    for nominal in map(at.timeline.instance, range(first, min(backlog.due, first + longest - len(stretch)))):
        if nominal in taboo or nominal in at.requests or backlog.is_settled(nominal):
            return
        if first_reason((*TAKEN, RetryDelayed), at, nominal) or not chain.may_follow(nominal, written, at.available):
            return
        if RerunPending.find(at, nominal, None) or OptionalInputPending.find(at, nominal, None):
            return
        written |= chain.written([nominal])
        yield nominal
