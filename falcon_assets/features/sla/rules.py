"""Rules of SLAs: the deadlines of instances, and breaches of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from falcon_assets.model.feed import FeedSla
from falcon_assets.model.process import ProcessSla
from falcon_assets.model.sla import SlaLevel
from falcon_assets.planning.clock import later
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.workloads import feed_of_workload

LOOK_AHEAD = timedelta(minutes=15)
"""The least time between announcement and breach (source: Falcon's feed.sla.lookAheadWindow.millis)."""
_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Deadline:
    """One level of the SLA of a feed or process on a cluster.

    Attributes:
        limit: From the nominal time to the deadline; a day is 24 hours long, a month 30 days.
        announced: From the nominal time until an unmet deadline is listed as pending.
    """

    kind: str
    entity: str
    cluster: str
    level: SlaLevel
    limit: timedelta
    announced: timedelta
    timeline: Timeline

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.kind, self.entity, self.cluster, self.level.value

    @property
    def declared_by(self) -> tuple[str, str]:
        """Kind and name of the entity that declares it: of a compaction its feed."""
        name = feed_of_workload(self.entity)
        return (self.kind if name == self.entity else "feed"), name

    def of(self, instance: datetime) -> datetime:
        """Returns the deadline of an instance; an arrival at this very moment is in time."""
        return later(instance, self.limit)

    def instances(self, first: datetime, before: datetime) -> range:
        last = before - timedelta.resolution if before > _BEGINNING else before
        return self.timeline.indexes(first, last) if first <= last and self.timeline.count else range(0)


def earlier(moment: datetime, by: timedelta) -> datetime:
    """Subtracts; returns the first moment of the year 1 where the result would be before it."""
    try:
        return moment - by
    except OverflowError:
        return _BEGINNING


def feed_deadlines(feed: str, cluster: str, sla: FeedSla, timeline: Timeline) -> Iterator[Deadline]:
    levels = ((SlaLevel.LOW, sla.low.length), (SlaLevel.HIGH, sla.high.length))
    return _deadlines("feed", feed, cluster, levels, timeline)


def process_deadlines(process: str, cluster: str, sla: ProcessSla, timeline: Timeline) -> Iterator[Deadline]:
    levels = ((SlaLevel.START, sla.should_start_in.length), (SlaLevel.END, sla.should_end_in.length))
    return _deadlines("process", process, cluster, levels, timeline)


def _deadlines(
    kind: str, entity: str, cluster: str, levels: tuple[tuple[SlaLevel, timedelta], ...], timeline: Timeline
) -> Iterator[Deadline]:
    """The second level is announced when the first is breached, or as long before as the first one is."""
    warned: timedelta | None = None
    for level, limit in levels:
        announced = max(limit - LOOK_AHEAD, timedelta())
        announced = announced if warned is None else min(announced, warned)
        yield Deadline(kind, entity, cluster, level, limit, announced, timeline)
        warned = limit


_NOBODY_LOOKS = timedelta(minutes=5)
"""Data is not waited for where its collector has not searched for so long."""


@dataclass(frozen=True)
class Scheduled:
    """The schedule of an entity: one of the times is set; ``since`` it is scheduled, or ``until`` then it was."""

    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Known:
    """The known times of an instance, for a feed both the landing; if not ``expected``, it never breaches."""

    started: datetime | None = None
    ended: datetime | None = None
    expected: bool = True

    def met_at(self, level: SlaLevel) -> datetime | None:
        return self.started if level is SlaLevel.START else self.ended


UNKNOWN = Known()


@dataclass(frozen=True)
class Breach:
    """An instance that did not meet a level of its SLA; ``met_at`` is set where it was met late."""

    deadline: Deadline
    instance: datetime
    met_at: datetime | None = None

    @property
    def at(self) -> datetime:
        return self.deadline.of(self.instance)


@dataclass(frozen=True)
class ToJudge:
    """The instances to judge; afterwards all before ``judged`` are, None: unchanged."""

    indexes: range = range(0)
    judged: datetime | None = None


def seen_until(now: datetime, looked: datetime | None, *, is_starting: bool) -> datetime:
    """Returns the time up to which landings are known, given the last finished search of the collector.

    With ``is_starting``, an old search counts: the collector has not caught up since it was off.
    """
    if looked is None or looked > now or (now - looked > _NOBODY_LOOKS and not is_starting):
        return now
    return looked


def to_judge(
    deadline: Deadline,
    scheduled: Scheduled,
    judged: datetime | None,
    evaluated: datetime | None,
    now: datetime,
    budget: int,
    seen: datetime | None = None,
) -> ToJudge:
    """Returns the instances to judge.

    A new deadline holds from the start of the schedule, but not before the last evaluation: an SLA that is added later
    does not apply to the past. When the clock was set back, all deadlines are new and last evaluated now; the storage
    of breaches removes duplicates.

    Args:
        deadline: The deadline.
        scheduled: The schedule of its entity.
        judged: The last :attr:`ToJudge.judged`; None: the deadline is new.
        evaluated: The last evaluation on the cluster; None: never.
        now: The time.
        budget: The largest number of instances; the next evaluation continues.
        seen: The result of :func:`seen_until`; None: now. Later arrivals may be unknown.
    """
    known = now if seen is None else min(seen, now)
    if scheduled.since is not None:
        before, since = known, scheduled.since
        if since > now:  # the clock was set back
            since = evaluated or now
    elif scheduled.until is not None and scheduled.until <= now and judged is not None:
        before, since = min(scheduled.until, known), None
    else:
        return ToJudge()
    end = earlier(before, deadline.limit)
    first = end if since is None else earlier(since, deadline.limit)
    if judged is None:
        start = max(first, earlier(evaluated, deadline.limit)) if evaluated else first
        end = max(start, end) if known < now else end  # nobody has looked since the start
    else:
        if not deadline.instances(judged, end):
            return ToJudge()
        start = judged if since is None else max(judged, first)
    found = deadline.instances(start, end)
    if len(found) > budget:
        return ToJudge(found[:budget], deadline.timeline.instance(found[budget]))
    return ToJudge(found, end)


def breaches(deadline: Deadline, indexes: Iterable[int], known: Mapping[datetime, Known]) -> list[Breach]:
    """Returns breaches among instances whose time is over; missing ones in ``known`` are unknown."""
    found = []
    for instance in dict.fromkeys(map(deadline.timeline.instance, indexes)):
        one = known.get(instance, UNKNOWN)
        met_at = one.met_at(deadline.level)
        if one.expected and (met_at is None or met_at > deadline.of(instance)):
            found.append(Breach(deadline, instance, met_at))
    return found


def kept(deadline: Deadline, indexes: Iterable[int], known: Mapping[datetime, Known]) -> list[datetime]:
    """Returns instances that met the second level, and with it the SLA, in time."""
    if not deadline.level.is_missed:
        return []
    breached = {one.instance for one in breaches(deadline, indexes, known)}
    instances = dict.fromkeys(map(deadline.timeline.instance, indexes))
    return [one for one in instances if one not in breached and known.get(one, UNKNOWN).expected]


def announced(deadline: Deadline, now: datetime) -> range:
    """Returns the indexes of instances with pending breaches, unless they met the deadline."""
    return deadline.instances(earlier(now, deadline.limit), earlier(now, deadline.announced) + timedelta.resolution)
