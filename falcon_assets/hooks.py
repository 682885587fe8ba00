"""Hooks for features: the core calls them without knowing who answers.

A feature is a folder of :mod:`falcon_assets.features`. What it brings is in its module ``hooks``: functions with the
names and parameters of those here (any subset of them), marked with :data:`hookimpl`. That module is imported as soon
as any hook is called, so it imports what takes long inside its functions. A folder that is not there brings nothing.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import pluggy

if TYPE_CHECKING:
    import dagster as dg
    from sqlalchemy import Connection

    from falcon_assets.catalog.declared import Definitions
    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.errors import Problem
    from falcon_assets.history.dagster_internals.events import Record as RecordEvents
    from falcon_assets.history.events.event_log import Logged
    from falcon_assets.history.events.instance_event import InstanceEvent, Notice, Sent
    from falcon_assets.history.events.record import Record
    from falcon_assets.history.folding.subscriptions import Subject
    from falcon_assets.history.platform.open_ledger import Ledger
    from falcon_assets.model.cluster import Cluster
    from falcon_assets.model.event_kind import EventKind
    from falcon_assets.model.feed import Feed
    from falcon_assets.model.process import Process
    from falcon_assets.planning.process_instance import OutputPlan
    from falcon_assets.planning.reasons import Reason
    from falcon_assets.planning.reasons_to_keep import ProtectedVersions
    from falcon_assets.planning.workloads import Workload
    from falcon_assets.settings import Settings


K = TypeVar("K")
V = TypeVar("V")
_FEATURES = "falcon_assets.features"
_spec = pluggy.HookspecMarker(_FEATURES)
hookimpl = pluggy.HookimplMarker(_FEATURES)
"""Marks a function as the answer to the hook of its name."""


class EventReceiver(Protocol):
    """Receives events of instances.

    Attributes:
        name: Of the environment variable that says where it is, or of what declares it. Empty: it knows receivers by
            their names, and gets what is for a name that no other has.
        at_once: How many events are sent in one go.
        pause: Between two messages to one name: events of the meantime form one message, unless one is urgent.
        wanted: Which events are kept for it.
        never_gives_up: Whether events wait for it for as long as it is there; else for three days.
    """

    name: str
    at_once: int
    pause: timedelta
    wanted: Mapping[Subject, Collection[EventKind]]
    never_gives_up: bool

    def names_for(self, event: InstanceEvent, entity: Feed | Process | Cluster, is_retried: bool) -> Sequence[str]:
        """The names by which it receives that one; empty: it does not. ``is_retried``: another attempt follows.

        The entity of an event about an executor is its cluster.
        """

    def send(self, connection: Connection, key: str, notices: Sequence[Notice]) -> Sent:
        """Sends those for one name, up to the first that does not come through.

        What is sent again is known as the same there: ``key`` is that of the same notices.
        """


class KeptAside(NamedTuple):
    """An output that is kept aside.

    Attributes:
        records: What history would say of it, were it published there and then.
        facts: What it would say besides, with the success of the instance.
    """

    place: str
    records: Sequence[Record]
    facts: Sequence[Record]


class StagedOutput(NamedTuple):
    """An output that was computed, and is not published.

    Attributes:
        keys: Of a table: its partition keys, and their types; the files do not have them.
        hold: Keeps it aside; takes the time on the falcon clock.
    """

    plan: OutputPlan
    url: str
    keys: Mapping[str, str]
    hold: Callable[[datetime], KeptAside]


class InspectedOutput(Protocol):
    """What a feature found in an output before it was published."""

    def record(self, version: str, at: datetime) -> Record:
        """Recorded in the event of the version that it became."""

    def evaluations(self, version: str) -> Iterable[dg.AssetCheckEvaluation]:
        """Shown by Dagster with that version."""


class OutputInspection(Protocol):
    """Looks at what an instance computed, between computing and publishing."""

    def __call__(
        self, process: str, nominal: datetime, staged: Sequence[StagedOutput]
    ) -> Mapping[str, InspectedOutput]:
        """Looks at the outputs of an instance; name of an output -> what it found.

        Raises HeldOutputError where none of them is to be published.
        """


class ForegroundStep(Protocol):
    """A step of each round of ``falcon run``, in place of a sensor, which may be off."""

    def step(self, ledger: Ledger) -> Mapping[str, str]:
        """Does what is due, before instances are started. What could not be done -> why."""


class Hooks(Protocol):
    """The hooks; each is called with named arguments and gives the list of what the features gave."""

    @_spec
    def definition_problems(self, definitions: Definitions, programs: bool) -> list[Problem]:
        """Problems and warnings of the feature's own keys; ``programs``: only those that programs and SQL have."""

    @_spec
    def records(self) -> Collection[type[Record]]:
        """Records of the feature in materializations and observations of the assets of feeds and processes."""

    @_spec
    def fold(
        self, connection: Connection, facts: Sequence[Logged], happened: Sequence[InstanceEvent]
    ) -> Sequence[InstanceEvent]:
        """Applies new facts of the kinds of :meth:`records`, in the order of history, to the tables of the feature.

        Called after the core has applied the same part of history, in the same transaction; ``happened`` are the events
        of that. Those that are returned take their places among them by ``event_id``. Tables that are made of nothing
        else are in ``PROJECTION``, so that a rebuild empties them before.
        """

    @_spec
    def unlogged_events(self, connection: Connection, clusters: Collection[str], limit: int) -> list[InstanceEvent]:
        """At most ``limit`` new events on these clusters that stand in no log, of entities with receivers."""

    @_spec
    def landing_gate(self, ledger: Ledger, store: EntityStore, cluster: Cluster, settings: Settings) -> Any:
        """A :class:`.LandingGate` for one pass of the cluster's collector; None: the feature withholds nothing."""

    @_spec
    def input_gates(
        self, connection: Connection, store: EntityStore, feeds: Collection[tuple[str, str]], now: datetime
    ) -> Mapping[tuple[str, str], Mapping[datetime, Reason]]:
        """Why available instances of feeds (cluster, feed) must not be read where valid data is required.

        Asked once in each round of a coordinator, for all feeds that it is about.
        """

    @_spec
    def feed_instance_details(
        self, connection: Connection, store: EntityStore, keys: Sequence[tuple[str, str, datetime]], now: datetime
    ) -> Mapping[tuple[str, str, datetime], Mapping[str, Mapping[str, Any]]]:
        """What lists show of feed instances (feed, cluster, instance), by name: data for JSON, with a ``text``."""

    @_spec
    def datasource_kinds(self) -> Mapping[str, tuple[bool, bool]]:
        """Types of datasources whose drivers are installed here: whether each can be read, and written."""

    @_spec
    def metric_values(
        self, connection: Connection, store: EntityStore, now: datetime
    ) -> Mapping[str, Mapping[tuple[str, ...], float]]:
        """Values of metrics that ``features/metrics`` declares, by name, then by the values of their labels."""

    @_spec
    def missing_reasons(
        self, connection: Connection, store: EntityStore, keys: Sequence[tuple[str, str, datetime]]
    ) -> Mapping[tuple[str, str, datetime], Reason]:
        """Why feed instances (feed, cluster, instance) that land from outside are not there, where more is known."""

    @_spec
    def eviction_reasons(
        self, connection: Connection, keys: Sequence[tuple[str, str, datetime]]
    ) -> Mapping[tuple[str, str, datetime], Reason]:
        """Why feed instances (feed, cluster, instance) that were evicted are gone, where that is known."""

    @_spec
    def protected_versions(
        self, connection: Connection, store: EntityStore, cluster: str, feeds: Collection[str]
    ) -> Mapping[str, ProtectedVersions]:
        """Feed -> which of its instances and versions on the cluster retention must leave, and why."""

    @_spec
    def event_receivers(self, store: EntityStore, settings: Settings) -> Sequence[EventReceiver]:
        """Those to whom events of instances are sent, in order and at least once; empty: none is set up."""

    @_spec
    def timeout_causes(
        self,
        ledger: Ledger,
        store: EntityStore,
        settings: Settings,
        workload: Workload,
        nominals: Iterable[datetime],
    ) -> Mapping[datetime, str]:
        """Nominal time -> what instances waited for that time out now, as Markdown; no store is asked."""

    @_spec
    def outdated_fact(self, connection: Connection, workload: Workload, fact: Record) -> str | None:
        """Why a fact of an output that was held must not be recorded any more, nor what it is about be published."""

    @_spec
    def output_inspection(
        self, ledger: Ledger, store: EntityStore, cluster: Cluster, settings: Settings, record: RecordEvents
    ) -> OutputInspection | None:
        """Looks at outputs of the run before they are published; None: at none that is on the cluster.

        ``record`` takes events of the run, about one asset.
        """

    @_spec
    def definitions(self, store: EntityStore, settings: Settings) -> dg.Definitions:
        """Definitions for Dagster beside assets, coordinators and collectors: sensors, schedules, jobs, checks."""

    @_spec
    def foreground_steps(
        self, store: EntityStore, settings: Settings, workloads: Sequence[Workload], clusters: Sequence[Cluster]
    ) -> ForegroundStep:
        """Steps of ``falcon run`` for these workloads, which read and write on these clusters."""


def merged(answers: Iterable[Mapping[K, V]]) -> dict[K, V]:
    """Merges the answers of features; where two answer for one key, the first counts."""
    return dict(ChainMap(*map(dict, answers)))


def installed() -> list[str]:
    """The names of the features that are there, in order."""
    return sorted(one.name for one in iter_modules(import_module(_FEATURES).__path__) if one.ispkg)


@cache
def hooks() -> Any:
    """Has a function for each of :class:`Hooks`. The features answer in the order of their names."""
    manager = pluggy.PluginManager(_FEATURES)
    manager.add_hookspecs(Hooks)
    for name in reversed(installed()):  # who is registered last is asked first
        if find_spec(module := f"{_FEATURES}.{name}.hooks"):
            manager.register(import_module(module), name)
    manager.check_pending()
    return manager.hook
