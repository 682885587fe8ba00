"""What is known about instances, as far as the search for causes asks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from falcon_assets.instances.rules.newer_versions import NewerVersions
from falcon_assets.model.feed import Feed
from falcon_assets.planning.instance_record import InstanceRecord, KnownFeedInstance
from falcon_assets.planning.reason import Reason
from falcon_assets.planning.retries import KnownInstance
from falcon_assets.planning.workloads import Workload


class Work(NamedTuple):
    """An instance of a process or a replication."""

    workload: str
    cluster: str
    nominal: datetime


class Data(NamedTuple):
    """An instance of a feed on a cluster."""

    feed: str
    cluster: str
    instance: datetime


@dataclass(frozen=True)
class Obstacle:
    """Something that is no instance and keeps instances from coming.

    Attributes:
        name: Of a sensor, or of the daemon.
        kind: sensor, daemon or run.
        state: In a word.
        reason: Why it is in the way.
        fix: A command; None: it mends itself.
    """

    name: str
    kind: str
    state: str
    reason: Reason
    fix: str | None


@dataclass(frozen=True)
class Landing:
    """What a store has of an instance that lands from outside.

    Attributes:
        path: Where it is expected.
        is_there: Whether anything of it is there; None: nobody asked, or nobody can tell.
        said: What it lacks, or why nobody can tell, in words; empty: nothing is known.
        is_complete: Whether it is there as a whole, and nobody has recorded it yet.
        refreshed: When the data of a snapshot feed, which is older than the instance, was refreshed last.
    """

    path: str
    is_there: bool | None = None
    said: str = ""
    is_complete: bool = False
    refreshed: datetime | None = None


@dataclass(frozen=True)
class Stretch:
    """What is known of a process and a feed between two times; what is in none of the sets is still to come.

    Attributes:
        there: The instances of the feed that are available.
        evicted: Those that retention took away.
        stops: The instances of the process that are in a run, or neither wait nor timed out.
    """

    there: Collection[datetime]
    evicted: Collection[datetime]
    stops: Collection[datetime]


class Entities(Protocol):
    """What there is, and what brings what."""

    @property
    def feeds(self) -> Mapping[str, Feed]:
        """The feeds by name."""

    def workload(self, name: str, cluster_name: str) -> Workload | None:
        """The process, or the replication, on that cluster."""

    def producers(self, feed_name: str, cluster_name: str) -> Sequence[Workload]:
        """The processes that write the feed there."""

    def replications_to(self, feed_name: str, cluster_name: str) -> Sequence[Workload]:
        """The replications that bring it there."""


class Answers(Protocol):
    """Who is asked what is known: for all instances of a step of the search at once."""

    def instances(self, keys: Collection[Work]) -> Mapping[Work, KnownInstance]:
        """Each of them."""

    def feed_instances(self, keys: Collection[Data]) -> Mapping[Data, KnownFeedInstance]:
        """Those that are, or were, there."""

    def available(self, cluster: str, feed: str, first: datetime, last: datetime) -> Collection[datetime]:
        """The available instances of a feed between two times, both included."""

    def newest(self, cluster: str, feed: str, until: datetime, number: int) -> Collection[datetime]:
        """The newest available instances of a feed up to a time."""

    def stretch(
        self, work: Work, feed: str, nominals: tuple[datetime, datetime], instances: tuple[datetime, datetime]
    ) -> Stretch:
        """What is known of the process between two nominal times, and of its own output between two of its own."""

    def newer(self, workload: Workload) -> NewerVersions | None:
        """What tells whether it has a version to use that it did not use; None where that does not matter."""

    def is_scheduled(self, workload: Workload) -> bool | None:
        """Whether it runs by itself; None: it does, and is suspended."""

    def run(self, work: Work, record: InstanceRecord) -> tuple[str, Reason, tuple[Obstacle, ...]]:
        """State and reason of an instance that was given to a run, and what is wrong there."""

    def not_started(self, work: Work) -> tuple[Reason, tuple[Obstacle, ...]]:
        """Why an instance that lacks nothing does not run, and what is wrong there."""

    def landings(self, keys: Collection[Data]) -> Mapping[Data, Landing]:
        """What there is of instances that land from outside."""

    def not_recorded(self, cluster: str) -> tuple[Obstacle, ...]:
        """Why what landed on the cluster is not recorded; nothing: it will be."""
