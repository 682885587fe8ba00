"""Archiving: the instance is whole and verified at another place before the original may be removed."""

from __future__ import annotations

from falcon_assets.planning.replication import ReplicationOptions
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_publication import publish_parts
from falcon_assets.storage.copying.copy_target import ARCHIVING, CopyTarget
from falcon_assets.storage.copying.instance_copy import InstanceCopy
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.version_pointer import data_path
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import TO_ARCHIVE


def archive(source: ClusterStore, path: str, target: ClusterStore, archive_path: str, flag: str | None) -> None:
    """Makes sure that the instance at ``path`` is whole at ``archive_path``, if it is still there.

    Within one file system it is moved in one step, and the original is gone. Else, and from a table, it is copied and
    verified, the flag last, and the caller removes the original. The same call resumes a killed copy, or removes it if
    the original is gone. Hadoop's side files are not copied; links are copied as their targets. After an error
    (StorageError, OSError) the original is unchanged.
    """
    is_there = kind_of(source).has(path)
    target = target.without_tables
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
