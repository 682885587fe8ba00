"""The checked set of entities that all other code works from."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from falcon_assets.base.garbage_collection import gc_paused
from falcon_assets.base.texts import keep_secret
from falcon_assets.catalog.checked_entities import CheckedEntities, Relations
from falcon_assets.catalog.kept_entities import kept, key_of
from falcon_assets.catalog.yaml_files.definition_files import read_contents, shown_path
from falcon_assets.errors import MissingDefinitionsError, Position, Problem, UnknownEntityError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.entity import Entity
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed, FeedCluster
from falcon_assets.model.flow import Flow
from falcon_assets.model.process import Process, ProcessCluster
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.compactions import CompactionWorkload, compaction_on
from falcon_assets.planning.replication import as_copied
from falcon_assets.planning.rollups import RolledUp
from falcon_assets.planning.transfers import ExportWorkload, ImportWorkload, exports_on, import_on
from falcon_assets.planning.workloads import (
    ProcessWorkload,
    ReplicationWorkload,
    Workload,
    feed_of_workload,
    replications_to,
)
from falcon_assets.planning.writers import not_from_outside

T = TypeVar("T")


@dataclass(frozen=True)
class EntityStore:
    """All entities, checked, by name and in the order of their files.

    Attributes:
        root: The folder of the entity definitions; workflow paths are relative to it.
        clusters: Of one colo only after :meth:`in_colo`.
        feeds: They may name clusters of other colos, see :meth:`feed_clusters`; so may processes. Those that flows are
            made of are among them.
        positions: Kind and name of each entity -> where it is declared.
        everywhere: All clusters, including other colos: replications may read there.
        warnings: Of all colos.
        critical: Feeds whose versions are critical unless users set another status; of all colos.
        excluded: Cluster and name of assets that are known here, but neither shown nor acted on.
    """

    root: Path
    clusters: Mapping[str, Cluster]
    feeds: Mapping[str, Feed]
    processes: Mapping[str, Process]
    datasources: Mapping[str, Datasource]
    flows: Mapping[str, Flow]
    positions: Mapping[tuple[str, str], Position]
    everywhere: Mapping[str, Cluster]
    relations: Relations
    warnings: tuple[Problem, ...] = ()
    critical: frozenset[str] = frozenset()
    excluded: frozenset[tuple[str, str]] = frozenset()

    def cluster(self, name: str) -> Cluster:
        """Raises UnknownEntityError if there is none, naming the nearest; so do those of other kinds."""
        return _find("cluster", name, self.clusters)

    def feed(self, name: str) -> Feed:
        return _find("feed", name, self.feeds)

    def process(self, name: str) -> Process:
        return _find("process", name, self.processes)

    def datasource(self, name: str) -> Datasource:
        return _find("datasource", name, self.datasources)

    def flow(self, name: str) -> Flow:
        return _find("flow", name, self.flows)

    @property
    def by_kind(self) -> Mapping[str, Mapping[str, Entity]]:
        """All entities, by kind and by name."""
        return {
            "cluster": self.clusters,
            "datasource": self.datasources,
            "flow": self.flows,
            "feed": self.feeds,
            "process": self.processes,
        }

    def named(self, kind: str, name: str) -> Entity:
        return _find(kind, name, self.by_kind[kind])

    def position(self, entity: Entity) -> Position:
        return self.positions[entity.kind, entity.name]

    def producers(self, feed_name: str, cluster_name: str) -> tuple[Workload, ...]:
        """Returns the process or import that makes the feed on that cluster: one at most, by the checks."""
        names = (name for name in self.relations.writers.get(feed_name, ()) if name in self.processes)
        making = (*self.workloads_of(*names), *self.imports_of(feed_name))
        return tuple(one for one in making if one.cluster == cluster_name)

    def writers(self, feed_name: str, cluster_name: str) -> tuple[Workload, ...]:
        """Returns the workloads that write the feed on that cluster."""
        return (*self.producers(feed_name, cluster_name), *self.replications_to(feed_name, cluster_name))

    def landing_clock(self, feed: Feed, cluster_name: str, clock: Clock) -> Clock | None:
        """Returns ``clock`` if the feed lands from outside; None: workloads publish it there."""
        return None if not_from_outside(feed, cluster_name, self.producers(feed.name, cluster_name)) else clock

    def rollups_on(self, cluster_name: str) -> list[Feed]:
        """Returns the roll-ups on that cluster, each after the roll-ups that it is made of."""
        found = dict[str, Feed]()

        def add(feed: Feed) -> None:
            if feed.rollup and feed.name not in found and feed.on(cluster_name):
                for member in feed.rollup.feeds:
                    add(member)
                found[feed.name] = feed

        for name in self.feeds:
            if name in self.relations.rollups:
                add(self.feeds[name])
        return [*found.values()]

    def replications_to(self, feed_name: str, cluster_name: str) -> tuple[ReplicationWorkload, ...]:
        """Returns the replications of the feed to that cluster, one per source."""
        return self._replications_of(feed_name).get(cluster_name, ())

    @cached_property
    def sources(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for (_, target), replications in self.replications.items():
            found.setdefault(target, set()).update(one.reads_on for one in replications)
        return found

    @cached_property
    def foreign_sources(self) -> dict[str, dict[str, Feed]]:
        """Clusters of other colos -> the feeds that are copied from there to here, with the copied instances only."""
        found: dict[tuple[str, str], list[ReplicationWorkload]] = {}
        for (feed, target), replications in self.replications.items():
            for one in replications:
                if one.source_colo is not None and self.includes(target, feed):
                    found.setdefault((one.reads_on, feed), []).append(one)
        feeds: dict[str, dict[str, Feed]] = {}
        for (source, feed), copies in found.items():
            feeds.setdefault(source, {})[feed] = as_copied(self.feeds[feed], source, (one.timeline for one in copies))
        return feeds

    @cached_property
    def process_workloads(self) -> tuple[ProcessWorkload, ...]:
        return self.workloads_of(*self.processes)

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        copying = (one for found in self.replications.values() for one in found)
        return (*self.process_workloads, *self.imports, *copying, *self.compactions, *self.exports)

    @cached_property
    def active_workloads(self) -> tuple[Workload, ...]:
        """The workloads that are not excluded; all assets of one are excluded together."""
        return tuple(one for one in self.workloads if self.includes(one.cluster, one.assets[0]))

    def includes(self, cluster_name: str, asset: str) -> bool:
        return (cluster_name, asset) not in self.excluded

    def workloads_of(self, *processes: str) -> tuple[ProcessWorkload, ...]:
        """Returns the workloads of some processes, in the order of the names.

        Raises:
            UnknownEntityError: there is no process of that name; names the nearest.
        """
        for name in processes:
            if name not in self._of_processes:
                process = self.process(name)
                there = (cluster.name for cluster, _ in self.process_clusters(process))
                made = tuple(ProcessWorkload(process, cluster, self.feeds) for cluster in there)
                self._of_processes.setdefault(name, made)  # of two threads both get the same
        return tuple(one for name in processes for one in self._of_processes[name])

    def workloads_named(self, name: str) -> tuple[Workload, ...]:
        """Returns the workloads of a process; else the other ones of a feed, or those of that name."""
        if name in self.processes:
            return self.workloads_of(name)
        feed = feed_of_workload(name)
        copying = (one for found in self._replications_of(feed).values() for one in found)
        own = (*self.imports_of(feed), *copying, *self.compactions_of(feed), *self.exports_of(feed))
        return tuple(one for one in own if name in (feed, one.name))

    def workload(self, name: str, cluster_name: str) -> Workload | None:
        found = self.workloads_named(name)
        return next((one for one in found if (one.name, one.cluster) == (name, cluster_name)), None)

    @cached_property
    def late_workloads(self) -> tuple[Workload, ...]:
        """The workloads that may run again for late inputs."""
        late = self.workloads_of(*(name for name in self.processes if name in self.relations.late))
        copying = (one for found in self.replications.values() for one in found)
        return (*late, *copying, *self.compactions, *(one for one in self.exports if one.late))

    @cached_property
    def compactions(self) -> tuple[CompactionWorkload, ...]:
        feeds = (name for name in self.feeds if name in self.relations.compacted)
        return tuple(one for name in feeds for one in self.compactions_of(name))

    def compactions_of(self, feed_name: str) -> tuple[CompactionWorkload, ...]:
        """Returns the compactions of a feed, one per cluster."""
        if feed_name not in self.relations.compacted or feed_name not in self.feeds:
            return ()
        feed = self.feeds[feed_name]
        found = (compaction_on(feed, cluster.name) for cluster, _ in self.feed_clusters(feed))
        return tuple(one for one in found if one is not None)

    @cached_property
    def imports(self) -> tuple[ImportWorkload, ...]:
        feeds = (name for name in self.feeds if name in self.relations.imported)
        return tuple(one for name in feeds for one in self.imports_of(name))

    @cached_property
    def exports(self) -> tuple[ExportWorkload, ...]:
        feeds = (name for name in self.feeds if name in self.relations.exported)
        return tuple(one for name in feeds for one in self.exports_of(name))

    def imports_of(self, feed_name: str) -> tuple[ImportWorkload, ...]:
        """Returns the imports of a feed, one per cluster at most."""
        if feed_name not in self.relations.imported or feed_name not in self.feeds:
            return ()
        feed = self.feeds[feed_name]
        return tuple(filter(None, (import_on(feed, entry) for _, entry in self.feed_clusters(feed))))

    def exports_of(self, feed_name: str) -> tuple[ExportWorkload, ...]:
        """Returns the exports of a feed, one per cluster and target."""
        if feed_name not in self.relations.exported or feed_name not in self.feeds:
            return ()
        feed = self.feeds[feed_name]
        return tuple(one for _, entry in self.feed_clusters(feed) for one in exports_on(feed, entry))

    def feed_clusters(self, feed: Feed) -> Iterator[tuple[Cluster, FeedCluster]]:
        """Only the clusters of this store, with the feed's settings for each."""
        return ((self.clusters[entry.name], entry) for entry in feed.clusters if entry.name in self.clusters)

    def process_clusters(self, process: Process) -> Iterator[tuple[Cluster, ProcessCluster]]:
        return ((self.clusters[entry.name], entry) for entry in process.clusters if entry.name in self.clusters)

    @cached_property
    def replications(self) -> dict[tuple[str, str], tuple[ReplicationWorkload, ...]]:
        """Feed and target -> its replications, one per source."""
        feeds = (name for name in self.feeds if name in self.relations.replicated)
        return {(name, target): found for name in feeds for target, found in self._replications_of(name).items()}

    @cached_property
    def _of_processes(self) -> dict[str, tuple[ProcessWorkload, ...]]:
        return {}

    @cached_property
    def _of_feeds(self) -> dict[str, dict[str, tuple[ReplicationWorkload, ...]]]:
        return {}

    def _replications_of(self, feed_name: str) -> Mapping[str, tuple[ReplicationWorkload, ...]]:
        """Returns them by target."""
        if feed_name not in self.relations.replicated or feed_name not in self.feeds:
            return {}
        if feed_name not in self._of_feeds:
            feed = self.feeds[feed_name]
            targets = ((cluster, entry) for cluster, entry in self.feed_clusters(feed) if entry.type == "target")
            other = {name: one.colo for name, one in self.everywhere.items() if name not in self.clusters}
            made = {cluster.name: tuple(replications_to(feed, entry, other)) for cluster, entry in targets}
            self._of_feeds.setdefault(feed_name, made)
        return self._of_feeds[feed_name]

    def in_colo(self, colo: str | None) -> EntityStore:
        """Returns the clusters of a colo and what is on them; raises UnknownEntityError if there are none."""
        if colo is None:
            return self
        clusters = {name: cluster for name, cluster in self.clusters.items() if cluster.colo == colo}
        if not clusters:
            colos = sorted({cluster.colo for cluster in self.clusters.values()})
            raise UnknownEntityError(f"no cluster has the colo {colo!r}{_suggestion(colo, colos)}")
        return self._on(clusters)

    def without(self, excluded: frozenset[tuple[str, str]], clusters: Container[str]) -> EntityStore:
        """Returns the same entities of which some are excluded, on ``clusters`` only."""
        left = {name: cluster for name, cluster in self.clusters.items() if name in clusters}
        return replace(self._on(left), excluded=excluded)

    def _on(self, clusters: Mapping[str, Cluster]) -> EntityStore:
        there = replace(self, clusters=clusters)
        return replace(
            there,
            feeds={name: feed for name, feed in self.feeds.items() if any(there.feed_clusters(feed))},
            processes={name: one for name, one in self.processes.items() if any(there.process_clusters(one))},
        )


def load_entities(root: Path, *, strict: bool = False, programs: bool = False, home: Path | None = None) -> EntityStore:
    """Reads and checks every definition file below ``root``.

    Args:
        root: The folder.
        strict: Warnings are problems, except doubts of a parser.
        programs: Whether workflow files and schemas of feeds are parsed, too.
        home: FALCON_HOME, where the entities are kept until a file changes, if it exists; None: they are read anew.

    Raises:
        InvalidDefinitionsError: with all problems and warnings of all files.
        MissingDefinitionsError: ``root`` is not a folder, or has no entity.
    """
    if root.exists() and not root.is_dir():
        raise MissingDefinitionsError(f"{shown_path(root)} is not a folder: set the folder with the entity definitions")
    if not root.is_dir():
        raise MissingDefinitionsError(f"there is no folder {shown_path(root)}: it should hold the entity definitions")
    if strict or programs or home is None or not home.is_dir():
        home = None
    with gc_paused():
        found = home and _kept(root, home)
        if not found:
            # Imported here: only who changed something waits for YAML and for the checks.
            from falcon_assets.catalog.checking import read_checked  # noqa: PLC0415 - said above

            found = read_checked(root, strict=strict, programs=programs, home=home)
    keep_secret(found.secrets)
    return EntityStore(
        root,
        found.clusters,
        RolledUp(found.feeds, found.relations.rollups) if found.relations.rollups else found.feeds,
        found.processes,
        found.datasources,
        found.flows,
        found.positions,
        found.clusters,
        found.relations,
        found.warnings,
        found.critical,
    )


def _kept(root: Path, home: Path) -> CheckedEntities | None:
    contents = read_contents(root)
    found = None if contents is None else kept(home, root, key_of(root, contents))
    return found if found and found.programs.are_there(root) else None


def _find(kind: str, name: str, entities: Mapping[str, T]) -> T:
    try:
        return entities[name]
    except KeyError:
        raise UnknownEntityError(f"there is no {kind} {name!r}{_suggestion(name, list(entities))}") from None


def _suggestion(word: str, legal: list[str]) -> str:
    close = nearest(word, legal)
    return close or (f"; there is: {', '.join(legal)}" if 0 < len(legal) <= 10 else "")
