"""Two weeks of March 2013, New York's change of clocks among them: what is declared, what arrives, when ticks are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from tests.simulation.world import (
    Arrival,
    Command,
    Feed,
    FeedKey,
    Input,
    Late,
    Process,
    Retry,
    World,
    timeline,
)

NEW_YORK = "America/New_York"
PRIMARY, BACKUP = "primary", "backup"


def march(day: int, hour: int = 0) -> datetime:
    return datetime(2013, 3, day, hour, tzinfo=UTC)


def hours(number: float) -> timedelta:
    return timedelta(hours=number)


BEGIN, END = march(3), march(17)
MIDNIGHT = march(3, 5)  # in New York

FEEDS = [
    Feed("flights", ("hours", 6), hours(30), BEGIN, END),
    Feed("weather", ("hours", 12), hours(16), BEGIN, END),
    Feed("prices", ("days", 1), hours(40), MIDNIGHT, END, NEW_YORK),
    Feed("cleaned", ("hours", 6), hours(36), BEGIN, END),
    Feed("daily", ("days", 1), hours(72), MIDNIGHT, END, NEW_YORK),
    Feed("reports", ("days", 1), hours(72), MIDNIGHT, END, NEW_YORK),
    Feed("mirrored", ("hours", 6), hours(30), BEGIN, END),
    Feed("audited", ("hours", 12), hours(36), BEGIN, END),
    Feed("verdicts", ("hours", 12), hours(36), BEGIN, END),
    Feed("newest", ("hours", 6), hours(1), BEGIN, END),
    Feed("strict", ("hours", 12), hours(1), BEGIN, END),
    Feed("patient", ("hours", 12), hours(1), BEGIN, END),
    Feed("priced", ("hours", 12), hours(1), BEGIN, END),
    Feed("beats", ("hours", 12), hours(1), BEGIN, END),
    Feed("pulse", ("minutes", 90), hours(1), BEGIN, END),
    Feed("paused", ("hours", 6), hours(1), BEGIN, END),
]

PROCESSES = [
    Process(
        "clean",
        ("hours", 6),
        BEGIN,
        END,
        timeout=hours(100),
        pipeline="landing",
        parallel=2,
        inputs=(Input("flights", "flights"),),
        outputs=(("cleaned", "now(0,0)"),),
        retry=Retry("periodic", hours(2), attempts=2),
        late=Late("exp-backoff", hours(3), (("flights", False),)),
    ),
    Process(
        "mirror",
        ("hours", 6),
        march(6),
        march(9),
        timeout=hours(60),
        pipeline="landing",
        clusters=(PRIMARY, BACKUP),
        inputs=(Input("flights", "flights", "now(-6,0)"),),
        outputs=(("mirrored", "now(0,0)"),),
        late=Late("backoff", hours(7), (("flights", True),)),
    ),
    Process(
        "summarize",
        ("days", 1),
        MIDNIGHT,
        END,
        timeout=hours(90),
        pipeline="stats",
        zone=NEW_YORK,
        order="LIFO",
        inputs=(
            Input("cleaned", "cleaned", "yesterday(0,0)", "today(-1,0)"),
            Input("weather", "weather", "yesterday(0,0)", "now(0,0)", optional=True),
        ),
        outputs=(("daily", "now(0,0)"),),
        retry=Retry("periodic", hours(1), attempts=1),
        late=Late("backoff", hours(5), (("cleaned", False), ("weather", True))),
    ),
    Process(
        "report",
        ("days", 1),
        MIDNIGHT,
        END,
        timeout=hours(120),
        pipeline="reports",
        zone=NEW_YORK,
        parallel=3,
        inputs=(Input("daily", "daily"), Input("prices", "prices", optional=True)),
        outputs=(("reports", "now(0,0)"),),
        late=Late("final", hours(1), (("daily", True), ("prices", False))),
    ),
    Process(
        "audit",
        ("hours", 12),
        march(4),
        march(11),
        timeout=hours(90),
        pipeline="stats",
        parallel=2,
        inputs=(Input("cleaned", "cleaned", "now(-6,0)"),),
        outputs=(("audited", "now(0,0)"),),
        late=Late("backoff", hours(6), (("cleaned", False),)),
    ),
    # Hears of a change of the flights before `audit` does, and yet has to wait for what `audit` will make of it.
    Process(
        "verdict",
        ("hours", 12),
        march(4),
        march(11),
        timeout=hours(90),
        pipeline="reports",
        parallel=2,
        inputs=(Input("flights", "flights", "now(-6,0)"), Input("audited", "audited")),
        outputs=(("verdicts", "now(0,0)"),),
        late=Late("exp-backoff", hours(3), (("flights", True), ("audited", False))),
    ),
    Process(
        "newest",
        ("hours", 6),
        march(5),
        march(10),
        timeout=hours(20),
        pipeline="stats",
        order="LAST_ONLY",
        inputs=(Input("flights", "flights"),),
        outputs=(("newest", "now(0,0)"),),
    ),
    Process(
        "strict",
        ("hours", 12),
        BEGIN,
        march(10),
        timeout=hours(9),
        pipeline="stats",
        inputs=(Input("weather", "weather"),),
        outputs=(("strict", "now(0,0)"),),
    ),
    Process(
        "patient",
        ("hours", 12),
        march(9),
        march(15),
        timeout=hours(5),
        pipeline="stats",
        inputs=(Input("weather", "weather"),),
        outputs=(("patient", "now(0,0)"),),
        retry=Retry("periodic", hours(6), attempts=2, on_timeout=True),
    ),
    Process(
        "last-prices",
        ("hours", 12),
        march(5),
        march(10),
        timeout=hours(30),
        pipeline="reports",
        inputs=(Input("prices", "prices", "latest(-1)", "latest(0)"),),
        outputs=(("priced", "now(0,0)"),),
    ),
    Process(
        "beat",
        ("hours", 12),
        march(4),
        march(10),
        timeout=hours(1),
        pipeline="reports",
        outputs=(("beats", "now(0,0)"),),
        retry=Retry("exp-backoff", hours(3), attempts=2),
    ),
    Process(
        "pulse",
        ("minutes", 90),
        march(12),
        march(13),
        timeout=hours(1),
        pipeline="reports",
        parallel=3,
        outputs=(("pulse", "now(0,0)"),),
    ),
    Process(
        "paused",
        ("hours", 6),
        march(5),
        march(12),
        timeout=hours(15),
        pipeline="landing",
        parallel=2,
        order="LIFO",
        inputs=(Input("flights", "flights"),),
        outputs=(("paused", "now(0,0)"),),
        late=Late("backoff", hours(4), (("flights", False),)),
    ),
]
EXTERNAL = [("flights", PRIMARY, BEGIN, END), ("weather", PRIMARY, BEGIN, END), ("prices", PRIMARY, MIDNIGHT, END)]
EXTERNAL += [("flights", BACKUP, march(5, 18), march(9))]


def make_world(seed: int, steps: range = range(280, 580)) -> World:
    """The same world for the same seed; so many minutes are between two ticks."""
    random = Random(seed)
    ticks = [BEGIN + timedelta(minutes=17)]
    while ticks[-1] < END + hours(30):
        ticks.append(ticks[-1] + timedelta(minutes=random.choice(steps)))
    suspended, resumed = (min(tick for tick in ticks if tick > time) for time in (march(6, 12), march(9)))
    return World(
        seed=seed,
        begin=ticks[0],
        feeds=FEEDS,
        processes=PROCESSES,
        arrivals=sorted(_arrivals(random), key=lambda arrival: arrival.time),
        commands=[Command(suspended, "paused", "suspend"), Command(resumed, "paused", "resume")],
        ticks=ticks,
    )


def make_failures(seed: int) -> set[tuple[str, datetime, int]]:
    """Which runs fail: process, nominal time, and the how manieth run of the instance."""
    random = Random(f"failures {seed}")
    chances = {"clean": 0.08, "beat": 0.4, "summarize": 0.15, "report": 0.05, "newest": 0.1}
    return {
        (process.name, nominal, number)
        for process in PROCESSES
        for nominal in timeline(process.start, process.end, process.every, process.zone)
        for number in (1, 2, 3)
        if random.random() < chances.get(process.name, 0)
    }


def _arrivals(random: Random) -> Iterator[Arrival]:
    for name, cluster, start, end in EXTERNAL:
        feed = next(feed for feed in FEEDS if feed.name == name)
        for instance in timeline(feed.start, feed.end, feed.every, feed.zone):
            if start <= instance < end and random.random() > 0.06:  # else it never comes
                yield from _of_instance(random, feed, (cluster, name, instance))


def _of_instance(random: Random, feed: Feed, key: FeedKey) -> Iterator[Arrival]:
    """Soon, late, or after the cut-off; perhaps again as it is; perhaps rewritten, before the cut-off or after it."""
    instance, late_by = key[2], random.choices([-1, 4, 20, 60], [0.1, 0.6, 0.22, 0.08])[0]
    time = instance + hours(late_by * random.random())
    versions = 1
    yield Arrival(time, key, _label(key, versions))
    while random.random() < 0.45:
        span = feed.cut_off if random.random() < 0.7 else feed.cut_off * 2
        time = max(time + timedelta(minutes=20), instance + span * random.random())
        versions += random.random() < 0.7  # else a duplicate
        yield Arrival(time, key, _label(key, versions))


def _label(key: FeedKey, version: int) -> str:
    return f"{key[1]}@{key[2]:%Y-%m-%dT%H:%MZ}#{version}"
