"""The declarations of a simulated world, and the arithmetic of its dates: the oracle's own, on purpose."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

FeedKey = tuple[str, str, datetime]  # cluster, feed, instance
Step = tuple[str, int]  # ("hours", 6)


@dataclass(frozen=True)
class Feed:
    name: str
    every: Step
    cut_off: timedelta
    start: datetime
    end: datetime
    zone: str = "UTC"


@dataclass(frozen=True)
class Input:
    name: str
    feed: str
    start: str = "now(0,0)"
    end: str = "now(0,0)"
    optional: bool = False


@dataclass(frozen=True)
class Retry:
    policy: str = "final"
    delay: timedelta = timedelta(hours=1)
    attempts: int = 0
    on_timeout: bool = False


@dataclass(frozen=True)
class Late:
    policy: str
    delay: timedelta
    inputs: tuple[tuple[str, bool], ...]  # name of the input, whether it has a late workflow


@dataclass(frozen=True)
class Process:
    name: str
    every: Step
    start: datetime
    end: datetime
    timeout: timedelta
    pipeline: str = "default"
    clusters: tuple[str, ...] = ("primary",)
    zone: str = "UTC"
    parallel: int = 1
    order: str = "FIFO"
    inputs: tuple[Input, ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()  # feed, expression
    retry: Retry = Retry()
    late: Late | None = None


@dataclass(frozen=True)
class Arrival:
    """Content that comes to lie in a feed instance; the same version twice is a duplicate."""

    time: datetime
    key: FeedKey
    version: str


@dataclass(frozen=True)
class Command:
    tick: datetime
    process: str
    verb: str  # suspend | resume


@dataclass
class World:
    seed: int
    begin: datetime
    feeds: list[Feed]
    processes: list[Process]
    arrivals: list[Arrival] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    ticks: list[datetime] = field(default_factory=list)  # the moments at which the system looks

    def feed(self, name: str) -> Feed:
        return next(feed for feed in self.feeds if feed.name == name)

    def process(self, name: str) -> Process:
        return next(process for process in self.processes if process.name == name)


@cache
def timeline(start: datetime, end: datetime, every: Step, zone: str) -> tuple[datetime, ...]:
    """All instances from `start` (included) to `end` (not included)."""
    unit, number = every
    times: list[datetime] = []
    moment = start
    while moment < end:
        times.append(moment)
        if unit == "days":  # on the calendar of the zone: the same wall time some days later
            local = start.astimezone(ZoneInfo(zone)) + timedelta(days=number * len(times))
            moment = local.astimezone(UTC)
        else:
            moment = start + len(times) * timedelta(**{unit: number})
    return tuple(times)


@cache
def instance_at(feed: Feed, time: datetime) -> datetime | None:
    """The feed instance at or before a time; None where the feed has none."""
    return max((t for t in timeline(feed.start, feed.end, feed.every, feed.zone) if t <= time), default=None)


@cache
def resolve(expression: str, nominal: datetime, zone: str) -> datetime:
    """The time that now(h,m), today(h,m) or yesterday(h,m) means for an instance."""
    match = re.fullmatch(r"(now|today|yesterday)\((-?\d+),(-?\d+)\)", expression)
    assert match, expression
    moment = nominal
    if match[1] != "now":
        midnight = nominal.astimezone(ZoneInfo(zone)).replace(hour=0, minute=0)
        moment = (midnight - timedelta(days=match[1] == "yesterday")).astimezone(UTC)
    return moment + timedelta(hours=int(match[2]), minutes=int(match[3]))
