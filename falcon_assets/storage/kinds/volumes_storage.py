"""Instances on several volumes of a cluster: each lies on one, and all that is done to it is done there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime
from heapq import merge
from itertools import groupby
from operator import itemgetter

from falcon_assets.errors import UnreachableError
from falcon_assets.model.feed import Feed
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, StoredVersion
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import REPLICATING, CopyRules, CopyTarget
from falcon_assets.storage.copying.listed_files import SourceFiles
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.instances.instance_files import Listing
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.reading import ReadableInstance
from falcon_assets.storage.kinds.removing import Removal, parent_and_name
from falcon_assets.storage.kinds.storage_kind import NOTHING_HELD, READERS_SECONDS, StorageKind
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.volumes import VolumesStore


class VolumesStorage(StorageKind):
    """Volumes that are away are left out of lists; questions about what lies there raise UnreachableError."""

    store: VolumesStore

    def __init__(self, store: VolumesStore, kind_of: Callable[[ClusterStore], StorageKind]) -> None:
        super().__init__(store)
        self._kind_of = kind_of

    def require_there(self) -> None:
        """A volume that was never written to need not be there."""
        for kind in self._there():
            with suppress(UnreachableError):
                return kind.require_there()
        raise UnreachableError(f"cluster {self.store.cluster.name!r}: none of its volumes is there: are they mounted?")

    def away(self) -> list[str]:
        return [str(error) for _, error in self.store.looked_at()[1]]

    def instances(self, feed: Feed, spans: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, str]]:
        for found, _ in groupby(merge(*(sorted(one.instances(feed, spans)) for one in self._there()))):
            yield found  # one that lies on two volumes fails when it is asked for

    def instance_at(self, feed: Feed, place: str) -> datetime | None:
        found = (self._kind_of(one).instance_at(feed, place) for one in self.store.volumes)
        return next((one for one in found if one is not None), None)

    def stored(self, feed: Feed) -> list[StoredInstance]:
        each = sorted((one for kind in self._there() for one in kind.stored(feed)), key=itemgetter(0))
        return [
            StoredInstance(nominal, tuple(location for one in alike for location in one.locations))
            for nominal, alike in groupby(each, key=itemgetter(0))
        ]

    def has(self, path: str) -> bool:
        return self.store.lying(path) is not None

    def is_available(self, feed: Feed, path: str) -> bool:
        return self._of(path).is_available(feed, path)

    def why_unavailable(self, feed: Feed, path: str) -> tuple[bool, str]:
        return self._of(path).why_unavailable(feed, path)

    def listing(self, path: str, flag: str | None) -> Listing:
        return self._of(path).listing(path, flag)

    def version(self, path: str, flag: str | None) -> DataVersion:
        return self._of(path).version(path, flag)

    def reading(
        self, path: str, flag: str | None, staging: LocalStaging | None = None
    ) -> AbstractContextManager[ReadableInstance]:
        return self._of(path).reading(path, flag, staging)

    def source_files(self, path: str, flag: str | None, left_out: Callable[[str], bool]) -> SourceFiles | None:
        return self._of(path).source_files(path, flag, left_out)

    def publish(
        self,
        key: str,
        outputs: Mapping[str, OutputTarget],
        staging: LocalStaging | None = None,
        held: Mapping[str, HeldData] = NOTHING_HELD,
    ) -> AbstractContextManager[InstancePublication]:
        return self._publish(key, outputs, staging, held)

    @contextmanager
    def _publish(
        self,
        key: str,
        outputs: Mapping[str, OutputTarget],
        staging: LocalStaging | None,
        held: Mapping[str, HeldData],
    ) -> Iterator[InstancePublication]:
        chosen = {
            name: self.store.holding(held[name].place) if name in held else self._for_writing(one.path)
            for name, one in outputs.items()
        }
        with ExitStack() as entered:
            found = dict[str, InstancePublication]()
            for volume in self.store.volumes:  # in the same order for all runs
                ours = {name: one for name, one in outputs.items() if chosen[name] is volume}
                if ours:
                    own = {name: held[name] for name in ours if name in held}
                    publication = self._kind_of(volume).publish(key, ours, staging, own)
                    found |= dict.fromkeys(ours, entered.enter_context(publication))
            yield _Publications(found)

    def repair(self, key: str, output: OutputTarget) -> None:
        for kind in self._there():
            kind.repair(key, output)

    def copy_target(self, output: OutputTarget, source: str, rules: CopyRules = REPLICATING) -> CopyTarget:
        return self._kind_of(self._for_writing(output.path)).copy_target(output, source, rules)

    def beside(self, other: StorageKind, path: str) -> StorageKind:
        found = self.store.lying(path)
        place = other.store.identity.place
        same = next((one for one in self.store.there() if one.identity.place == place), None)
        return self._kind_of(found or same or self._for_writing(path))

    def has_begun(self, path: str) -> bool:
        return any(kind.has_begun(path) for kind in self._there())

    def kept_versions(self, feed: str, instance: datetime | None = None) -> list[StoredVersion]:
        return [one for kind in self._there() for one in kind.kept_versions(feed, instance)]

    def restore(
        self, key: str, output: OutputTarget, version: str, *, dry_run: bool = False
    ) -> tuple[DataVersion, bool]:
        return self._kind_of(self._for_writing(output.path)).restore(key, output, version, dry_run=dry_run)

    def move(self, path: str, target: StorageKind, target_path: str) -> bool:
        kind = self._of(path)
        return kind.move(path, target.beside(kind, target_path), target_path)

    def removal(self, flag: str | None) -> Removal:
        return _Removal(self.store, self._around, lambda one: self._kind_of(one).removal(flag))

    def is_untouched(self, location: StoredLocation, flag: str | None) -> bool:
        return self.has(location.path)

    def purge(self, patience: float = READERS_SECONDS) -> None:
        for kind in self._there():
            kind.purge(patience)

    def is_purged(self) -> bool:
        return all(kind.is_purged() for kind in self._there())

    def _there(self) -> list[StorageKind]:
        return list(map(self._kind_of, self.store.there()))

    def _of(self, path: str) -> StorageKind:
        return self._kind_of(self.store.lying(path) or self.store.there()[0])

    def _for_writing(self, path: str) -> ClusterStore:
        return self.store.for_writing(path, self._begun(path))

    def _around(self, path: str) -> ClusterStore:
        """Returns the volume on which an instance lies, or is being written; another one, where nobody knows it."""
        found = self.store.lying(path)
        return found or next(iter(self._begun(path)), None) or self.store.there()[0]

    def _begun(self, path: str) -> list[ClusterStore]:
        return [one for one in self.store.there() if self._kind_of(one).has_begun(path)]


class _Publications:
    """Those of several volumes, as one."""

    def __init__(self, by_name: Mapping[str, InstancePublication]) -> None:
        self._of = by_name

    def staging(self, name: str) -> str:
        return self._of[name].staging(name)

    def staging_url(self, name: str) -> str:
        return self._of[name].staging_url(name)

    def keys(self, name: str) -> Mapping[str, str]:
        return self._of[name].keys(name)

    def hold(self, name: str) -> HeldData:
        return self._of[name].hold(name)

    def commit(self, name: str) -> DataVersion:
        return self._of[name].commit(name)


class _Removal(Removal):
    """Removes from the volume on which something lies."""

    def __init__(
        self,
        store: VolumesStore,
        around: Callable[[str], ClusterStore],
        removal_of: Callable[[ClusterStore], Removal],
    ) -> None:
        self._store, self._around, self._removal_of = store, around, removal_of
        self._removals = dict[str, Removal]()

    def place(self, location: StoredLocation) -> str:
        return self._at(location).place(location)

    def held(self, location: StoredLocation) -> AbstractContextManager[str]:
        return self._at(location).held(location)

    def measure(self, place: str) -> tuple[int, int]:
        return self._on(self._store.holding(place)).measure(place)

    def remove(self, location: StoredLocation, place: str) -> None:
        self._on(self._store.holding(place)).remove(location, place)

    def set_aside(self, place: str) -> None:
        self._on(self._store.holding(place)).set_aside(place)

    def _at(self, location: StoredLocation) -> Removal:
        parent_and_name(self._store, location)
        return self._on(self._around(location.path))

    def _on(self, volume: ClusterStore) -> Removal:
        key = volume.identity.place
        if key not in self._removals:
            self._removals[key] = self._removal_of(volume)
        return self._removals[key]
