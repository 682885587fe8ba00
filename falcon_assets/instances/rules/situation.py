"""Input and result of decisions about the instances of a workload."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import chain

from falcon_assets.instances.rules.executors import ExecutorChoice
from falcon_assets.instances.rules.looks import Looks
from falcon_assets.instances.rules.newer_versions import LastUse, NewerVersions
from falcon_assets.instances.rules.own_outputs import OwnChain
from falcon_assets.instances.rules.pending_reruns import PendingReruns, window_of
from falcon_assets.instances.rules.producers import Producers, never, no_producers
from falcon_assets.instances.rules.queues import Admission
from falcon_assets.instances.rules.readiness import MissingInput, Readiness
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, Launch, RerunRequest
from falcon_assets.planning.reasons import Reason, SeenSource
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.workloads import LONGEST_RUN, Workload


def no_source(feed: str, instance: datetime | str) -> None: ...


@dataclass(frozen=True)
class Situation:
    """Everything that a decision depends on; all times on the falcon clock, in UTC.

    Attributes:
        until: No instance after it is due; None: no limit.
        since: When the workload last became RUNNING (scheduled or resumed); None: it is not RUNNING.
        first_open: Index in the timeline; everything before it is settled, except as in ``records`` and ``requests``.
        records: By nominal time: instances from ``first_open`` on, unsettled ones before it, and those in ``requests``.
        slots_in_use: How many of its :attr:`at_once` slots runs have.
        available: By feed; sets, for speed.
        budget: How many instances may be launched.
        requests: Live ones, by nominal time.
        pending_reruns: Of other workloads; readers wait for them.
        evicted: Feed -> instance -> when retention evicted it.
        last_used: By input whose versions are used once.
        newest_written: Newest recorded instance by snapshot feed that it writes, or of an export by its name.
        collected: When the feed was last searched for instances from outside; None: not known.
        ended: When an instance without a record ended, and how; None: not known, or it succeeded.
        admission: What its queue admits; None: it is in none.
        executors: Those that may get its runs; None: there are none to choose from, or it needs none.
        seen_source: What was seen of a missing instance of a feed whose source is of another colo, with a database of
            its own; None: it has none.
        gates: Feed -> instance that is there -> why inputs that require valid data wait for it.
    """

    readiness: Readiness
    now: datetime
    until: datetime | None
    since: datetime | None
    first_open: int
    records: Mapping[datetime, InstanceRecord]
    slots_in_use: int
    available: Mapping[str, Collection[datetime]]
    budget: int = LONGEST_RUN
    requests: Mapping[datetime, RerunRequest] = field(default_factory=dict)
    pending_reruns: PendingReruns = field(default_factory=PendingReruns)
    evicted: Mapping[str, Mapping[datetime, datetime]] = field(default_factory=dict)
    last_used: Mapping[str, LastUse] = field(default_factory=dict)
    newest_written: Mapping[str, datetime] = field(default_factory=dict)
    is_suspended: bool = False
    looks: Looks = field(default_factory=Looks)
    collected: Callable[[str], datetime | None] = never
    producers: Producers = no_producers
    ended: Callable[[datetime], tuple[datetime, InstanceState] | None] = never
    gates: Mapping[str, Mapping[datetime, Reason]] = field(default_factory=dict)
    seen_source: Callable[[str, datetime | str], SeenSource | None] = no_source
    admission: Admission | None = None
    executors: ExecutorChoice | None = None
    workload: Workload = field(init=False, repr=False)
    timeline: Timeline = field(init=False, repr=False)
    at_once: int = field(init=False)

    def __post_init__(self) -> None:
        """Cached, as these are read for every instance."""
        workload = self.readiness.workload
        known = {"workload": workload, "timeline": workload.timeline, "at_once": workload.partitions.at_once}
        self.__dict__.update(known)  # frozen

    @cached_property
    def chain(self) -> OwnChain | None:
        """None where the instances do not need each other."""
        return OwnChain.of(self.readiness)

    @cached_property
    def newer(self) -> NewerVersions | None:
        """None where any version may be used."""
        return NewerVersions.of(self.workload, self.last_used, self.records)

    def closed_gates(self, nominal: datetime) -> Iterator[Reason]:
        """Why the instance must not read what is there, by input; raises as :meth:`.Readiness.missing`."""
        if not self.gates:
            return
        for declared in self.workload.gated:
            if closed := self.gates.get(declared.feed):
                window = window_of(self.workload, declared, nominal, self.available)
                yield from (closed[one] for one in window if one in closed)

    def missing(self, nominal: datetime) -> Iterator[MissingInput]:
        """A requested instance may use a version again; raises as :meth:`.Readiness.missing`."""
        missing = self.readiness.missing(nominal, self.available)
        if self.newer is None or nominal in self.requests:
            return missing
        return chain(missing, self.newer.missing(nominal))


@dataclass(frozen=True)
class Decision:
    """Actions to take now, by nominal times in the order of the workload.

    Attributes:
        timed_out: Waited too long, wait for evicted inputs, or are requested and would replace the output of a later
            one.
        skipped: A newer instance runs, or did.
        waiting: Considered, but not started now.
        first_open: Index of the first instance without a settled record.
        wake_at: When after ``now`` the clock alone changes the decision; None: never.
        retry_at: The earliest retry after ``now``; None: none waits.
        further: How many more wait, unconsidered.
    """

    launches: tuple[Launch, ...]
    timed_out: tuple[tuple[datetime, Reason], ...]
    skipped: tuple[tuple[datetime, Reason], ...]
    waiting: Mapping[datetime, Reason]
    first_open: int
    wake_at: datetime | None
    retry_at: datetime | None = None
    further: int = 0
