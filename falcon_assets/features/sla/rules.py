"""SLAs: until when instances have to be there, to have started or ended, and which breach that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from falcon_assets.model.feed import FeedSla
from falcon_assets.model.process import ProcessSla
from falcon_assets.model.sla import SlaLevel
from falcon_assets.planning.retries import later
from falcon_assets.planning.timeline import Timeline

LOOK_AHEAD = timedelta(minutes=15)
"""How long before it happens a breach is pending at least (source: Falcon's feed.sla.lookAheadWindow.millis)."""
_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Deadline:
    """One level of the SLA of a feed or process on a cluster.

    Attributes:
        kind: feed or process.
        entity: Its name.
        cluster: Where.
        level: Which level.
        limit: How long after its nominal time an instance has time; a day is 24 hours long, a month 30 days.
        announced: How long after its nominal time a breach of an instance is pending, unless it is met.
        timeline: The instances.
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
        """Names it: kind, entity, cluster, level."""
        return self.kind, self.entity, self.cluster, self.level.value

    def of(self, instance: datetime) -> datetime:
        """Until when that instance has time; what comes at this very moment is in time."""
        return later(instance, self.limit)

    def instances(self, first: datetime, before: datetime) -> range:
        """Indexes of the instances from ``first`` on, all before ``before``."""
        last = before - timedelta.resolution if before > _BEGINNING else before
        return self.timeline.indexes(first, last) if first <= last and self.timeline.count else range(0)


def earlier(moment: datetime, by: timedelta) -> datetime:
    """So long before a moment; the first moment of the year 1 where that lies before it."""
    try:
        return moment - by
    except OverflowError:
        return _BEGINNING


def feed_deadlines(feed: str, cluster: str, sla: FeedSla, timeline: Timeline) -> Iterator[Deadline]:
    """The deadlines of a feed on a cluster."""
    levels = ((SlaLevel.LOW, sla.low.length), (SlaLevel.HIGH, sla.high.length))
    return _deadlines("feed", feed, cluster, levels, timeline)


def process_deadlines(process: str, cluster: str, sla: ProcessSla, timeline: Timeline) -> Iterator[Deadline]:
    """The deadlines of a process on a cluster."""
    levels = ((SlaLevel.START, sla.should_start_in.length), (SlaLevel.END, sla.should_end_in.length))
    return _deadlines("process", process, cluster, levels, timeline)


def _deadlines(
    kind: str, entity: str, cluster: str, levels: tuple[tuple[SlaLevel, timedelta], ...], timeline: Timeline
) -> Iterator[Deadline]:
    """The second level is announced when the first one is breached, or as long before as the first one is."""
    warned: timedelta | None = None
    for level, limit in levels:
        announced = max(limit - LOOK_AHEAD, timedelta())
        announced = announced if warned is None else min(announced, warned)
        yield Deadline(kind, entity, cluster, level, limit, announced, timeline)
        warned = limit


_NOBODY_LOOKS = timedelta(minutes=5)
"""When a collector has not looked for so long, what it might have found is not waited for."""


@dataclass(frozen=True)
class Scheduled:
    """When an entity is scheduled; of the two times one is known.

    Attributes:
        since: It is scheduled, since then.
        until: It is not, since then.
    """

    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Known:
    """What an instance came to first; for a feed both times are when it landed.

    Attributes:
        started: When it started; None: it has not.
        ended: When it succeeded; None: it has not.
        expected: False: it is skipped or suspended, and nobody waits for it.
    """

    started: datetime | None = None
    ended: datetime | None = None
    expected: bool = True

    def met_at(self, level: SlaLevel) -> datetime | None:
        """When that level was met; None: it is not."""
        return self.started if level is SlaLevel.START else self.ended


UNKNOWN = Known()
"""Nothing has come."""


@dataclass(frozen=True)
class Breach:
    """An instance that did not meet a level of its SLA.

    Attributes:
        deadline: The level.
        instance: The instance.
        met_at: When it was met after all; None: it is not.
    """

    deadline: Deadline
    instance: datetime
    met_at: datetime | None = None

    @property
    def at(self) -> datetime:
        """When it happened."""
        return self.deadline.of(self.instance)


@dataclass(frozen=True)
class ToJudge:
    """What is to be judged now.

    Attributes:
        indexes: Of the instances, in the timeline of the deadline.
        judged: Afterwards every instance before this time is judged, or was not expected; None: nothing changes.
    """

    indexes: range = range(0)
    judged: datetime | None = None


def seen_until(now: datetime, looked: datetime | None, *, is_starting: bool) -> datetime:
    """Until when it is known of a feed what has landed: until somebody looked, as long as somebody still does.

    Args:
        now: The time.
        looked: When its collector last went through all that was due; None: never, or it lands in another way.
        is_starting: Whether everything has just begun, so that the collector may not have looked since it was off.
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
    """Which instances are to be judged.

    Where a deadline is new, it holds from when its entity was scheduled, but not from before the last evaluation: an
    SLA that is added to what runs already says nothing about the past. When the clock was set back all deadlines are
    new, and evaluated last now; whoever keeps the breaches has each only once.

    Args:
        deadline: The deadline.
        scheduled: When its entity is scheduled.
        judged: What :attr:`ToJudge.judged` was last; None: it is new.
        evaluated: When the deadlines of the cluster were evaluated last; None: never.
        now: The time.
        budget: How many instances at most; the others are left for the next time.
        seen: What :func:`seen_until` says; None: now. What has not come by then may have come since.
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
    """The breaches among instances whose time is over.

    Args:
        deadline: The deadline.
        indexes: Of the instances, in its timeline.
        known: What they came to; nothing where an instance is not named.
    """
    found = []
    for instance in dict.fromkeys(map(deadline.timeline.instance, indexes)):
        one = known.get(instance, UNKNOWN)
        met_at = one.met_at(deadline.level)
        if one.expected and (met_at is None or met_at > deadline.of(instance)):
            found.append(Breach(deadline, instance, met_at))
    return found


def kept(deadline: Deadline, indexes: Iterable[int], known: Mapping[datetime, Known]) -> list[datetime]:
    """The instances that met the second level in time, and with it the SLA; arguments as of :func:`breaches`."""
    if not deadline.level.is_missed:
        return []
    breached = {one.instance for one in breaches(deadline, indexes, known)}
    instances = dict.fromkeys(map(deadline.timeline.instance, indexes))
    return [one for one in instances if one not in breached and known.get(one, UNKNOWN).expected]


def announced(deadline: Deadline, now: datetime) -> range:
    """Indexes of the instances of which a breach is pending, unless the deadline is met.

    A breach of the second level is pending from the first deadline on, a breach of the first from a quarter of an
    hour before it on, both not before the nominal time.
    """
    return deadline.instances(earlier(now, deadline.limit), earlier(now, deadline.announced) + timedelta.resolution)
