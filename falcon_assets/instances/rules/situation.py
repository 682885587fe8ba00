"""What a decision about the instances of a workload depends on, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import chain

from falcon_assets.instances.rules.looks import Looks
from falcon_assets.instances.rules.newer_versions import LastUse, NewerVersions
from falcon_assets.instances.rules.own_outputs import OwnChain
from falcon_assets.instances.rules.pending_reruns import PendingReruns
from falcon_assets.instances.rules.producers import Producers, never, no_producers
from falcon_assets.instances.rules.readiness import MissingInput, Readiness
from falcon_assets.planning.instance_record import InstanceRecord, Launch, RerunRequest
from falcon_assets.planning.reason import Reason
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class Situation:
    """Everything that a decision depends on; all times on the falcon clock, in UTC.

    Attributes:
        readiness: What tells which inputs the instances of the workload lack.
        now: The time.
        until: No instance after it is due; None: no such limit.
        since: When the workload last became RUNNING (scheduled or resumed); None: it is not RUNNING.
        first_open: Index in the timeline; everything before it is settled, but for what ``records`` and ``requests``
            say of it.
        records: What is known, by nominal time: about instances from ``first_open`` on, about those before it that are
            not settled, and about those in ``requests``.
        slots_in_use: How many of its :attr:`at_once` slots runs have.
        available: The available instances by the name of the feed; sets, for speed.
        budget: How many instances may be launched at most.
        requests: The requests to rerun instances that are alive, by nominal time.
        pending_reruns: What reruns of other workloads are about to replace: instances that read it wait for them.
        evicted: By the name of the feed: its instances that retention took away, and when; nobody waits for them.
        last_used: By the name of the input, of those of which each version is used once.
        newest_written: By the name of the feed, of the snapshots that it writes: the newest instance that is recorded.
        is_suspended: Whether people hold the workload back, which they had scheduled.
        looks: When somebody looked, this time included.
        collected: Says when somebody last searched for the instances of a feed from outside; None: nobody knows.
        producers: Says what is known of the workloads that write a feed.
        ended: Says when an instance ended of which ``records`` says nothing any more; None: nobody knows.
        workload: The workload.
        timeline: Its instances.
        at_once: How many of them may run at once.
    """

    readiness: Readiness
    now: datetime
    until: datetime | None
    since: datetime | None
    first_open: int
    records: Mapping[datetime, InstanceRecord]
    slots_in_use: int
    available: Mapping[str, Collection[datetime]]
    budget: int = 100
    requests: Mapping[datetime, RerunRequest] = field(default_factory=dict)
    pending_reruns: PendingReruns = field(default_factory=PendingReruns)
    evicted: Mapping[str, Mapping[datetime, datetime]] = field(default_factory=dict)
    last_used: Mapping[str, LastUse] = field(default_factory=dict)
    newest_written: Mapping[str, datetime] = field(default_factory=dict)
    is_suspended: bool = False
    looks: Looks = field(default_factory=Looks)
    collected: Callable[[str], datetime | None] = never
    producers: Producers = no_producers
    ended: Callable[[datetime], datetime | None] = never
    workload: Workload = field(init=False, repr=False)
    timeline: Timeline = field(init=False, repr=False)
    at_once: int = field(init=False)

    def __post_init__(self) -> None:
        """Asked of the workload once, as these are read for every instance."""
        workload = self.readiness.workload
        known = {"workload": workload, "timeline": workload.timeline, "at_once": workload.partitions.at_once}
        self.__dict__.update(known)  # frozen

    @cached_property
    def chain(self) -> OwnChain | None:
        """The instances of the workload as they wait for each other; None where they do not."""
        return OwnChain.of(self.readiness)

    @cached_property
    def newer(self) -> NewerVersions | None:
        """What tells whether there is a version that was not used; None where that does not matter."""
        return NewerVersions.of(self.workload, self.last_used, self.records)

    def missing(self, nominal: datetime) -> Iterator[MissingInput]:
        """What an instance lacks; one that is asked for may use a version again.

        Raises:
            UnknownEntityError: a feed of a required input is not defined on the cluster.
            ExpressionError: an input window lies beyond the years 1 to 9999.
        """
        missing = self.readiness.missing(nominal, self.available)
        if self.newer is None or nominal in self.requests:
            return missing
        return chain(missing, self.newer.missing(nominal))


@dataclass(frozen=True)
class Decision:
    """What to do now; instances are named by their nominal times, in the order of the workload.

    Attributes:
        launches: Runs to start.
        timed_out: Instances that have waited too long for inputs, wait for what was evicted, or are asked for and would
            replace what a later one wrote, each with the reason.
        skipped: Instances that will not run because a newer one does, or did, each with the reason.
        waiting: Why the others that were considered do not start now.
        first_open: Index of the first instance that the records do not say to be settled.
        wake_at: The earliest time after ``now`` at which the clock alone changes something; None: never.
        retry_at: The earliest time after ``now`` at which a failed instance may be tried again; None: none waits.
        further: How many others wait of which nothing more is said, because there are too many.
    """

    launches: tuple[Launch, ...]
    timed_out: tuple[tuple[datetime, Reason], ...]
    skipped: tuple[tuple[datetime, Reason], ...]
    waiting: Mapping[datetime, Reason]
    first_open: int
    wake_at: datetime | None
    retry_at: datetime | None = None
    further: int = 0
