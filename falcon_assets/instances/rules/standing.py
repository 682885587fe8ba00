"""For how long a decision stands: until something happens that it depends on, or until a time has come."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TypeAlias

from falcon_assets.instances.rules.situation import Decision, Situation
from falcon_assets.instances.rules.waiting import (
    InputInvalid,
    InputsMissing,
    InputUnchecked,
    InRun,
    NoFreeSlot,
    Waiting,
)
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.retries import opens_at
from falcon_assets.planning.workloads import LONGEST_RUN, Workload

FEED, WORKLOAD, ENTITY = "feed", "workload", "entity"
Subject: TypeAlias = tuple[str, str, str]
"""What may change: (feed, cluster, name), (workload, cluster, name) or (entity, kind, name)."""


@dataclass(frozen=True, slots=True)
class Waits:
    """What a decision left: ``first`` is the first instance that waits, with its reason."""

    in_runs: int
    waiting: int
    first: tuple[datetime, Reason] | None

    @classmethod
    def of(cls, decision: Decision) -> Waits:
        in_runs = sum(isinstance(reason, InRun) for reason in decision.waiting.values())
        first = next((one for one in decision.waiting.items() if not isinstance(one[1], InRun)), None)
        return cls(in_runs, len(decision.waiting) - in_runs + decision.further, first)


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a decision after it was made.

    Attributes:
        subjects: It stands while nothing happens to them.
        until: When the clock alone changes it; None: never.
        is_open: It has to be made again in any case: something was started, or may be as soon as others are done.
    """

    waits: Waits
    subjects: frozenset[Subject]
    until: datetime | None
    is_open: bool


def standing_of(at: Situation, decision: Decision, producers: Collection[Situation]) -> Standing:
    """``producers`` are those whose situations were asked for."""
    times = filter(None, (decision.wake_at, *map(_moves, (at, *producers))))
    subjects = frozenset(chain.from_iterable(_subjects(one.workload) for one in (at, *producers)))
    return Standing(Waits.of(decision), subjects, min(times, default=None), _is_open(at, decision))


def _subjects(workload: Workload) -> Iterator[Subject]:
    yield WORKLOAD, workload.cluster, workload.name
    yield ENTITY, workload.entity.kind, workload.entity.name
    for declared in workload.inputs:
        yield FEED, workload.reads_on, declared.feed
    for written in workload.snapshots:
        yield FEED, workload.cluster, written.feed


def _moves(at: Situation) -> datetime | None:
    """When its next instance is due, or one is tried again."""
    line = at.timeline
    following = max(line.indexes(line.start, at.workload.last_due(at.now)).stop, line.first)
    due = at.workload.due(line.instance(following)) if following < line.count else None
    opens = (opens_at(one, at.workload.retry) for one in at.records.values())
    return min((one for one in (due, *opens) if one is not None and one > at.now), default=None)


def _is_open(at: Situation, decision: Decision) -> bool:
    if decision.launches or decision.timed_out or decision.skipped or at.budget < LONGEST_RUN:
        return True  # with less of a budget it may have left out what is ready
    if at.workload.source_colo or any(one.ended and one.ended > at.now for one in at.records.values()):
        return True  # what is seen in another colo is not told; the clock was set back
    reasons = decision.waiting.values()
    # Gates open with time as well; and turns, queues and executors change with what others do.
    if any(
        isinstance(one, InputInvalid | InputUnchecked) or not isinstance(one, Waiting | NoFreeSlot) for one in reasons
    ):
        return True
    return any(isinstance(one, InputsMissing) and one.until is None for one in reasons) and _is_uncollected(at)


def _is_uncollected(at: Situation) -> bool:
    """Whether its inputs were not searched for since the last pause: until then nothing is given up."""
    found = filter(None, (at.collected(one.feed) for one in at.workload.inputs))
    return at.looks.woke is not None and any(one < at.looks.woke for one in found)
