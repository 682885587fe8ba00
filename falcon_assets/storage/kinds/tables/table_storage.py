"""Instances that are partitions of the tables of a catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime
from itertools import islice
from typing import NoReturn

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.model.store_url import is_hdfs, is_object_store
from falcon_assets.model.table_uri import TableUri
from falcon_assets.planning.data_usage import normal_place
from falcon_assets.planning.eviction import StoredVersion
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import REPLICATING, CopyRules, CopyTarget
from falcon_assets.storage.copying.listed_files import SourceFiles
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.instances.instance_files import Listing
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.reading import ReadableInstance, ReadablePartition
from falcon_assets.storage.kinds.removing import Removal
from falcon_assets.storage.kinds.storage_kind import KEEPS_NONE, NOTHING_HELD, READERS_SECONDS, StorageKind
from falcon_assets.storage.kinds.tables.copied_files import files_of_partitions
from falcon_assets.storage.kinds.tables.copy_target import HdfsTableCopyTarget, ObjectTableCopyTarget, TableCopyTarget
from falcon_assets.storage.kinds.tables.kept_versions import KeptPartitions, remove_old
from falcon_assets.storage.kinds.tables.look import TableLook, version_of
from falcon_assets.storage.kinds.tables.partition_folders import folder_of
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.kinds.tables.reachable import within_reach
from falcon_assets.storage.kinds.tables.removal import TableRemoval
from falcon_assets.storage.kinds.tables.table_folder import TableFolder, new_layout, table_folder
from falcon_assets.storage.kinds.tables.version_folders import VersionFolders
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.catalog import NewPartition, Partition, TableCatalog, TableLayout
from falcon_assets.storage.tables.table_store import TableStore

MOST_ELSEWHERE = 10_000
"""A table with more partitions is not searched for places outside of its folder."""


def instance_there(place: str, instances: Mapping[str, datetime]) -> datetime | None:
    return next((instances[one] for one in _up(place) if one in instances), None)


def is_below(place: str, folder: str) -> bool:
    return f"{place}/".startswith(f"{normal_place(folder)}/")


def _up(place: str) -> Iterator[str]:
    while place:
        yield place
        place = place.rpartition("/")[0]


def restored(
    store: TableStore, key: str, output: OutputTarget, version: str, present: Sequence[Partition], *, dry_run: bool
) -> tuple[DataVersion, bool]:
    of, uri, catalog = output.keeps, TableUri.parse(output.path), store.catalog
    if of is None:
        raise StorageError(f"{key}: {KEEPS_NONE}")
    if present and (now := version_of(present)).version == version:
        return now, False
    layout = catalog.layout(uri.database, uri.table)
    if layout is None:
        raise StorageError(f"{key}: there is no table {uri.name} at {catalog.endpoint}")
    with driver_explained(store.cluster.name, f"restore {output.path}"):
        versions = VersionFolders.of(store, layout)
        kept = KeptPartitions(versions)
        old = kept.get(of, version)
        if old is None:
            raise StorageError(f"{key}: there is no version {version}: it was not kept, or is removed already")
        cannot = f"{key}: version {version} cannot be restored"
        if lost := old.lost(versions.folder):
            raise StorageError(
                f"{cannot}: {lost[0]} is not there any more: somebody removed it, by expiring snapshots of the "
                "table or otherwise"
            )
        if other := {one.format for one in old.partitions} - {layout.format}:
            raise StorageError(f"{cannot}: it is in {min(other)}, and table {uri.name} is in {layout.format} now")
        if dry_run:
            return version_of(old.partitions), True
        before = {one.values: one for one in present}
        new = {one.values: NewPartition(one.places, parameters=one.parameters) for one in old.partitions}
        # In Hive, with all of its parameters, the time of its last change among them, it has the version that it had.
        with kept.replacing(of, output.path, before, new):
            done = catalog.switch_all(uri.database, uri.table, new, {}, before)
        kept.forget(of, version)
    return version_of([*done.values()]), True


_AT_ONCE = 1000


class TableStorage(StorageKind):
    """A partition is complete if it exists, and changed if the catalog says so; flags mean nothing here.

    Answers of the catalog stay known to this object: it is made for one look at a store.
    """

    def __init__(self, store: TableStore) -> None:
        super().__init__(store)
        self._tables = store
        self._look = TableLook(store)
        self._names: dict[str, list[tuple[str, datetime]]] = {}
        self._places: dict[str, dict[str, datetime]] = {}

    @property
    def _catalog(self) -> TableCatalog:
        return self._tables.catalog

    @property
    def cannot(self) -> frozenset[Ability]:
        return frozenset(Ability) - {Ability.SPARK_OUTPUT, Ability.WITHOUT_CONNECTOR, Ability.VERSIONS}

    @property
    def object_store(self) -> ClusterStore | None:
        uri = self._tables.table
        layout = self._look.layout(uri) if uri else None
        if layout is None:
            # It is made below the cluster's own place, if at all.
            return self._tables.without_tables if Ability.WITHOUT_CONNECTOR in self.store.files.cannot else None
        folder = self._folder_of(layout)
        return folder.store if folder else None

    def instances(self, feed: Feed, spans: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, str]]:
        if not spans:
            return
        paths = InstancePaths(feed, self.store.cluster)
        for path in sorted(self._look.list(paths)):
            instance = paths.instance(path)
            if instance and any(first <= instance <= last for first, last in spans):
                yield instance, path

    def instance_at(self, feed: Feed, place: str) -> datetime | None:
        """Asks for all partitions, once; of a table with very many only if the place is in the table's folder."""
        paths = InstancePaths(feed, self.store.cluster)
        layout = self._look.layout(TableUri.parse(paths.template.text))
        if layout is None:
            return None
        if feed.name not in self._names:
            self._names[feed.name] = [(path, one) for path in self._look.list(paths) if (one := paths.instance(path))]
        instances = self._names[feed.name]
        if not instances or (len(instances) > MOST_ELSEWHERE and not is_below(place, layout.location)):
            return None
        if feed.name not in self._places:
            self._look.ask([path for path, _ in instances])
            there = ((one, at) for path, at in instances for part in self._look.partitions(path) for one in part.places)
            self._places[feed.name] = {normal_place(one): at for one, at in there}
        return instance_there(place, self._places[feed.name])

    def asked_together(self, found: Iterable[tuple[datetime, str]]) -> Iterator[tuple[datetime, str]]:
        rest = iter(found)
        while part := list(islice(rest, _AT_ONCE)):
            self._look.ask([path for _, path in part])
            yield from part

    def has(self, path: str) -> bool:
        return bool(self._look.partitions(path))

    def why_unavailable(self, feed: Feed, path: str) -> tuple[bool, str]:
        uri = TableUri.parse(path)
        if self._look.layout(uri) is None:
            return False, f"there is no table {uri.name} at {self._catalog.endpoint}"
        if self._look.partitions(path):
            return True, f"{path} changes while it is read"
        lacks = f"there is no partition {path.partition('#')[2]} of" if uri.fixed else "there are no rows in"
        return False, f"{lacks} {uri.name} at {self._catalog.endpoint}"

    def listing(self, path: str, flag: str | None) -> Listing:
        uri = TableUri.parse(path)
        if not uri.is_whole:
            return super().listing(path, flag)
        changed = self._catalog.changed_at(uri.database, uri.table)
        version = TableStorage(self._tables).version(path, flag).version
        if changed != self._catalog.changed_at(uri.database, uri.table):
            raise StorageError(f"cluster {self.store.cluster.name!r}: {path} changes while it is read")
        return Listing(version, changed)

    def version(self, path: str, flag: str | None) -> DataVersion:
        return version_of(self._look.required(path))

    def records_known(self, path: str) -> int | None:
        known = [one.records for one in self._look.required(path)]
        counts = [one for one in known if one is not None]
        return sum(counts) if len(counts) == len(known) else None

    @contextmanager
    def reading(self, path: str, flag: str | None, staging: LocalStaging | None = None) -> Iterator[ReadableInstance]:
        if not TableUri.is_one(path):
            uri, found = self._noted(path)
        else:
            uri, found = path, self._look.required(path)
        table = TableUri.parse(uri)
        layout = self._look.layout(table)
        assert layout is not None
        with ExitStack() as held:
            name = self.store.cluster.name
            with driver_explained(name, f"read {path}"):
                named = self._catalog.as_written(table.database, table.table, found)
                parts = within_reach(name, held, self._folder_of(layout), [one for one, _ in named], staging)
            partitions = tuple(
                ReadablePartition(layout, one, columns) for one, (_, columns) in zip(parts, named, strict=True)
            )
            yield ReadableInstance(version_of(found), partitions=partitions)

    def publish(
        self,
        key: str,
        outputs: Mapping[str, OutputTarget],
        staging: LocalStaging | None = None,
        held: Mapping[str, HeldData] = NOTHING_HELD,
    ) -> AbstractContextManager[InstancePublication]:
        return TablePublication(self._tables, key, outputs, staging=staging, held=held)

    def source_files(self, path: str, flag: str | None, left_out: Callable[[str], bool]) -> SourceFiles | None:
        """Asks the catalog anew: a copy compares the files before and after."""
        found, uri = self._copied(path), TableUri.parse(path)
        layout = self._look.layout(uri)
        folder = self._folder_of(layout) if layout else None
        if any(columns for _, columns in self._catalog.as_written(uri.database, uri.table, [*found.values()])):
            self._refuse(path, "be copied, as files of it name columns otherwise than it does,")
        return files_of_partitions(self._tables, folder, found, left_out) if found else None

    def copy_target(self, output: OutputTarget, source: str, rules: CopyRules = REPLICATING) -> CopyTarget:
        if not rules.replaces:
            self._refuse(output.path, "be an archive")
        is_on_objects = self.object_store is not None
        if is_on_objects != (Ability.RENAME in self.store.files.cannot):
            self._refuse(output.path, "be copied to another kind of store than that of its cluster")
        on_files = HdfsTableCopyTarget if "webhdfs" in self.store.fs.protocol else TableCopyTarget
        kind = ObjectTableCopyTarget if is_on_objects else on_files
        return kind(self._tables, output, source, rules, lambda: self._copied(output.path))

    def _copied(self, path: str) -> dict[str, Partition]:
        """Returns the present partitions of an instance, by the folder of each in a copy."""
        uri, found = TableUri.parse(path), TableLook(self._tables).partitions(path)
        layout = self._look.layout(uri) if found else None
        return {folder_of(uri, layout.key_names, one.values): one for one in found} if layout else {}

    def kept_versions(self, feed: str, instance: datetime | None = None) -> list[StoredVersion]:
        if not (known := self._versions):
            return []
        with driver_explained(self.store.cluster.name, f"list the versions of {feed}"):
            found = KeptPartitions(known[2]).of_feed(feed, instance)
        if not found:
            return []
        now, paths = TableLook(self._tables), [path for _, path in found]
        now.ask(paths)
        present = {path: version_of(each).version for path in paths if (each := now.partitions(path))}
        return [one for one, path in found if present.get(path) != one.version]

    def _kept_path(self, kept: StoredVersion) -> str:
        return kept.prefix  # its note

    def _noted(self, note: str) -> tuple[str, tuple[Partition, ...]]:
        versions = self._versions
        kept = KeptPartitions(versions[2]).read(note) if versions else None
        if versions is None or kept is None or kept.lost(versions[2].folder):
            raise StorageError(f"cluster {self.store.cluster.name!r}: the version is not kept any more: {note}")
        return kept.path, kept.partitions

    def restore(
        self, key: str, output: OutputTarget, version: str, *, dry_run: bool = False
    ) -> tuple[DataVersion, bool]:
        present = TableLook(self._tables).partitions(output.path)
        return restored(self._tables, key, output, version, present, dry_run=dry_run)

    def removal(self, flag: str | None) -> Removal:
        return TableRemoval(self._tables, self._look.partitions)

    def purge(self, patience: float = READERS_SECONDS) -> None:
        """Removes what was replaced or dropped a day ago; waits for nothing."""
        with suppress(StorageError), driver_explained(self.store.cluster.name, "remove what was replaced"):
            if versions := self._old_versions:
                remove_old(self._catalog, *versions)

    def is_purged(self) -> bool:
        with suppress(StorageError), driver_explained(self.store.cluster.name, "look for what was replaced"):
            if versions := self._old_versions:
                return not any(versions[2].old())
        return True

    @property
    def _versions(self) -> tuple[str, str, VersionFolders] | None:
        uri = self._tables.table
        return self._versions_of(self._look.layout(uri)) if uri else None

    @property
    def _old_versions(self) -> tuple[str, str, VersionFolders] | None:
        """Also of a table that has yet to be made: outputs that were found wrong may be held for it."""
        uri = self._tables.table
        return self._versions or (self._versions_of(new_layout(self._tables, uri, "")) if uri else None)

    def _versions_of(self, layout: TableLayout | None) -> tuple[str, str, VersionFolders] | None:
        uri, folder = self._tables.table, self._folder_of(layout) if layout else None
        return (uri.database, uri.table, VersionFolders(layout, folder)) if uri and layout and folder else None

    def _folder_of(self, layout: TableLayout) -> TableFolder | None:
        place = layout.location
        is_known = place.startswith("file:") or is_hdfs(place) or is_object_store(place)
        return table_folder(self._tables, layout.name, layout.location) if is_known else None

    def _refuse(self, what: str, how: str) -> NoReturn:
        raise StorageError(f"cluster {self.store.cluster.name!r}: {what} is a table, which cannot {how} yet")
