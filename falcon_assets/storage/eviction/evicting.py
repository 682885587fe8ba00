"""Evicts instances, and versions of them, after a decision; killed at any point, the same call again completes it.

An instance that is to be archived is whole and verified at another place before the original may be removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, Verdict, VersionVerdict
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.replication import ReplicationOptions
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import ARCHIVING, CopyTarget, publish_parts
from falcon_assets.storage.copying.instance_copy import InstanceCopy
from falcon_assets.storage.errors import explained, explanation
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.version_pointer import data_path
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.removing import Removal
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import TO_ARCHIVE


class Evicted(NamedTuple):
    nominal: datetime
    files: int
    """Removed by this call, without the flag and Hadoop's side files, as in a data version."""
    bytes: int
    error: StorageError | None = None
    """The reason why a part is still there: the same call again resumes."""


def evict(
    store: ClusterStore, verdicts: Iterable[Verdict], flag: str | None, archive_store: ClusterStore | None = None
) -> Iterator[Evicted]:
    """Deletes or archives instances as the recorded verdicts say, one after the other, each on demand.

    Only their locations are touched, and the folders between these and their fixed prefix. On file systems a location
    is moved aside in one step, so that no reader sees a part of it: call :meth:`StorageKind.purge` at the end.
    """
    removals = Removals(store, flag)
    for verdict in verdicts:
        if verdict.action == "keep":
            continue
        files, size, error = 0, 0, None
        for location in verdict.instance.locations:
            try:
                own, removal = removals.of(location)
                with removal.held(location) as place:
                    measured = removal.measure(place)
                    path = verdict.archive_path(location)
                    if path is not None:
                        archive(own, location.path, (archive_store or store).at(verdict.archive_root), path, flag)
                    removal.remove(location, place)
            except OSError as refusal:
                error = explanation(store.cluster.name, f"evict {location.place}", refusal)
            except StorageError as refusal:
                error = refusal
            if error:
                break
            files, size = files + measured[0], size + measured[1]
        yield Evicted(verdict.instance.nominal, files, size, error)


def evict_versions(
    store: ClusterStore, paths: InstancePaths, verdicts: Iterable[VersionVerdict]
) -> Iterator[tuple[VersionVerdict, StorageError | None]]:
    """Removes versions, which no run may be restoring, as :func:`evict`; gives the error if one is still there."""
    removal = kind_of(store).removal(paths.feed.availability_flag)
    prefix = paths.template.fixed_prefix({})
    for verdict in verdicts:
        if not verdict.goes:
            continue
        kept, error = verdict.kept, None
        instance = StoredLocation("data", paths.data(kept.nominal), prefix)
        try:
            if kept.path:
                with removal.held(instance):
                    location = StoredLocation("version", kept.path, kept.prefix)
                    removal.remove(location, removal.place(location))
        except OSError as refusal:
            error = explanation(store.cluster.name, f"evict {kept.path}", refusal)
        except StorageError as refusal:
            error = refusal
        yield verdict, error


def is_untouched(store: ClusterStore, instance: StoredInstance, flag: str | None) -> bool:
    """Whether nothing was removed yet of an instance that was decided on; without a flag false on object stores."""
    first = instance.locations[0]
    with explained(store.cluster.name, f"look at {first.place}"):
        return kind_of(store.at(first.root)).is_untouched(first, flag)


def archive(source: ClusterStore, path: str, target: ClusterStore, archive_path: str, flag: str | None) -> None:
    """Makes sure that the instance at ``path`` is whole at ``archive_path``, if it is still there.

    Within one file system it is moved in one step, and the original is gone. Else, and from a table, it is copied and
    verified, the flag last, and the caller removes the original. The same call resumes a killed copy, or removes it if
    the original is gone. Hadoop's side files are not copied; links are copied as their targets. After an error
    (StorageError, OSError) the original is unchanged.
    """
    is_there = kind_of(source).has(path)
    target = kind_of(target.without_tables).beside(kind_of(source), archive_path).store
    if is_there and not kind_of(source).move(path, kind_of(target), archive_path):
        _copy(source, path, target, archive_path, flag)
    else:
        abandon_archive(target, archive_path, flag)


def abandon_archive(store: ClusterStore, path: str, flag: str | None) -> None:
    """Removes an unfinished copy to an archive, not what was there before; no copy may be running."""
    target = _copy_target(store, path, flag)
    target.recover(f"cluster {store.cluster.name!r}: cannot remove what was copied of {path}")  # a killed publication
    target.discard()


def _copy(source: ClusterStore, path: str, store: ClusterStore, archive_path: str, flag: str | None) -> None:
    marker = f"{source.path(path)}/{flag}"
    is_complete = flag is not None and source.fs.isfile(marker)
    target = _copy_target(store, archive_path, flag if is_complete else None)
    are_files = Ability.MODES not in kind_of(source).cannot | kind_of(store).cannot
    keeps = are_files and store.files.keeps_attributes_of(source.files)
    options = ReplicationOptions(preserve_permission=keeps, preserve_times=keeps)
    with InstanceCopy(kind_of(source), path, target, lambda _: True, options) as copy:
        result = copy.finish(copy.run_here())
    if result.to_publish:
        content = source.fs.cat_file(marker) if is_complete and data_path(source, path, flag) == path else b""
        publish_parts(f"cluster {store.cluster.name!r}: cannot archive {archive_path}", [target], content)


def _copy_target(store: ClusterStore, path: str, flag: str | None) -> CopyTarget:
    return kind_of(store.without_tables).copy_target(OutputTarget(path, flag), TO_ARCHIVE, ARCHIVING)


class Removals:
    """The removals of the roots that instances of one feed lie in, each made once."""

    def __init__(self, store: ClusterStore, flag: str | None) -> None:
        self._store, self._flag = store, flag
        self._by_root: dict[str | None, tuple[ClusterStore, Removal]] = {}

    def of(self, location: StoredLocation) -> tuple[ClusterStore, Removal]:
        if location.root not in self._by_root:
            own = self._store.at(location.root)
            self._by_root[location.root] = own, kind_of(own).removal(self._flag)
        return self._by_root[location.root]

    def measure(self, instance: StoredInstance) -> tuple[int, int]:
        """Returns files and bytes of an instance in all its locations, counted as :class:`Evicted` does."""
        files, size = 0, 0
        for location in instance.locations:
            _, removal = self.of(location)
            with explained(self._store.cluster.name, f"measure {location.place}"):
                there = removal.measure(removal.place(location))
            files, size = files + there[0], size + there[1]
        return files, size
