"""Facts about instances that the search for causes asks for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from falcon_assets.instances.rules.newer_versions import NewerVersions
from falcon_assets.model.feed import Feed
from falcon_assets.planning.instance_record import InstanceRecord, KnownFeedInstance
from falcon_assets.planning.reasons import Reason, SeenSource
from falcon_assets.planning.retries import KnownInstance
from falcon_assets.planning.workloads import Workload


class Work(NamedTuple):
    workload: str
    cluster: str
    nominal: datetime


class Data(NamedTuple):
    feed: str
    cluster: str
    instance: datetime


@dataclass(frozen=True)
class Obstacle:
    """A sensor, daemon or run that keeps instances from coming; ``fix`` is None where no action is needed."""

    name: str
    kind: str
    state: str
    reason: Reason
    fix: str | None


@dataclass(frozen=True)
class Landing:
    """The state of an instance from outside in its store.

    Attributes:
        is_there: Whether any data exists; None: not known.
        said: What is missing, or why it is not known, in words; may be empty.
        refreshed: The last refresh of a snapshot feed, if older than the instance.
        source: What was seen last, if it is on a cluster of another colo, which is not served with this database.
    """

    path: str
    is_there: bool | None = None
    said: str = ""
    is_complete: bool = False
    refreshed: datetime | None = None
    source: SeenSource | None = None


@dataclass(frozen=True)
class Stretch:
    """Facts between two times, ``stops``: instances in a run, or neither waiting nor timed out; others are pending."""

    there: Collection[datetime]
    evicted: Collection[datetime]
    stops: Collection[datetime]


class Entities(Protocol):
    @property
    def feeds(self) -> Mapping[str, Feed]: ...

    def workload(self, name: str, cluster_name: str) -> Workload | None: ...

    def producers(self, feed_name: str, cluster_name: str) -> Sequence[Workload]: ...

    def replications_to(self, feed_name: str, cluster_name: str) -> Sequence[Workload]: ...


class Answers(Protocol):
    """Sources of facts; each call is for all instances of a step of the search."""

    def instances(self, keys: Collection[Work]) -> Mapping[Work, KnownInstance]: ...

    def feed_instances(self, keys: Collection[Data]) -> Mapping[Data, KnownFeedInstance]: ...

    def available(self, cluster: str, feed: str, first: datetime, last: datetime) -> Collection[datetime]:
        """Both times are included."""

    def newest(self, cluster: str, feed: str, until: datetime, number: int) -> Collection[datetime]: ...

    def stretch(
        self, work: Work, feed: str, nominals: tuple[datetime, datetime], instances: tuple[datetime, datetime]
    ) -> Stretch: ...

    def newer(self, workload: Workload) -> NewerVersions | None:
        """Returns the decision on newer versions to use; None where versions do not matter."""

    def is_scheduled(self, workload: Workload) -> bool | None:
        """Returns None where it is suspended."""

    def run(self, work: Work, record: InstanceRecord) -> tuple[str, Reason, tuple[Obstacle, ...]]: ...

    def not_started(self, work: Work) -> tuple[Reason, tuple[Obstacle, ...]]: ...

    def closed(self, workload: Workload) -> Mapping[Data, Reason]:
        """Returns why instances that are there must not be read by inputs that require valid data."""

    def not_checked(self, cluster: str) -> tuple[Obstacle, ...]:
        """Returns why nothing is checked on the cluster; empty: it will be."""

    def withheld(self, keys: Collection[Data]) -> Mapping[Data, Reason]:
        """Returns why instances are not recorded, of feeds whose instances are there only by their record."""

    def landings(self, keys: Collection[Data]) -> Mapping[Data, Landing]: ...

    def not_recorded(self, cluster: str, sensor: str = "collector") -> tuple[Obstacle, ...]:
        """Returns why landed data on the cluster is not recorded; empty: it will be."""
