"""Publishing what was copied: all parts of an instance at once, so that nobody sees one without the others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from falcon_assets.errors import StorageError
from falcon_assets.planning.replication.copy_plan import CopyRecord, ListedFile
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.bulk_sync import sync_all
from falcon_assets.storage.copying.copy_folders import CopyFolders
from falcon_assets.storage.copying.copy_records import true_records
from falcon_assets.storage.copying.file_marks import list_files
from falcon_assets.storage.copying.instance_copy import part_lock
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint, version_of
from falcon_assets.storage.kinds.publishing import OutputTarget
from falcon_assets.storage.kinds.renaming.publication import RenamePublication

_OUTPUT = "copy"


@dataclass(frozen=True)
class _Part:
    """What one source brought."""

    folders: CopyFolders
    delete: frozenset[str]
    copied: Mapping[str, CopyRecord]
    files: Mapping[str, ListedFile]
    """Where it wrote: in its staging, or in the instance itself on object stores."""
    known: Mapping[str, CopyRecord]
    """What was verified of the instance as it is published until now."""


def publish_copies(store: ClusterStore, key: str, output: OutputTarget, sources: Sequence[str]) -> DataVersion:
    """Publishes the parts of ``sources``, each copied and finished; the files of other sources stay as they are.

    Args:
        store: The target's.
        key: The target instance, for messages.
        output: Where it goes.
        sources: Names of the source clusters whose parts were copied since the last publication: all of them where
            there is no published instance yet. A crash may lose the part of the first one: it is copied again then.

    Raises:
        StorageError: a part is not finished, its files changed since they were verified, or the store refuses. The
            published instance, if there was one, is as it was (on object stores: not available until this succeeds).
    """
    with ExitStack() as held, driver_explained(store.cluster.name, f"publish {output.path}"):
        published = list_files(store, output.path, output.flag)
        for source in sorted(sources) if store.is_local else ():  # two that publish at once must not block each other
            held.enter_context(part_lock(CopyFolders(store, output.path, source), f"{key}: source {source!r}"))
        parts = [_finished(CopyFolders(store, output.path, source), key, source, published) for source in sources]
        version = _swap(store, key, output, parts, published) if store.is_local else _switch(store, output, parts)
        for part in parts:
            now = {**part.known, **part.copied}
            part.folders.end(record for name, record in now.items() if name not in part.delete)
    return version


def _finished(folders: CopyFolders, key: str, source: str, published: Mapping[str, ListedFile]) -> _Part:
    """The part of a source, whose files have to be as they were verified."""
    finished = folders.finished()
    if finished is None:
        raise StorageError(f"{key}: the part of source {source!r} is not copied yet")
    copied, delete = finished
    files = folders.staged_files() if folders.has_data else published
    staged = folders.staged_records()
    records = true_records(staged, files)
    if changed := [name for name in copied if name not in records]:
        raise StorageError(f"{key}: {changed[0]} changed since it was copied from {source!r}: copy it again")
    known = true_records([*folders.published_records(), *staged], published)
    return _Part(folders, frozenset(delete), {name: records[name] for name in copied}, files, known)


def _swap(
    store: ClusterStore,
    key: str,
    output: OutputTarget,
    parts: Sequence[_Part],
    published: Mapping[str, ListedFile],
) -> DataVersion:
    """Assembles the new instance beside the old one and swaps it in."""
    deleted = frozenset().union(*(part.delete for part in parts))
    copied = {name: record for part in parts for name, record in part.copied.items()}
    carried = [name for name in published if name not in deleted and name not in copied]
    first, final = parts[0].folders.data, store.path(output.path)
    if "" not in copied:
        Path(first).mkdir(parents=True, exist_ok=True)
    for name in parts[0].files.keys() - parts[0].copied.keys():
        Path(first, name).unlink()  # not verified, or of an earlier attempt at another plan
    for part in parts[1:]:
        _link(part.folders.data, first, part.copied)
    _link(final, first, carried)
    sync_all(parts[0].folders.folder)
    known = {name: record for part in parts for name, record in part.known.items()}
    checksums = {**{name: known.get(name) for name in carried}, **copied}
    version = None
    if all(checksums.values()):
        version = version_of(
            (os.fsencode(name), record.size, bytes.fromhex(record.checksum))
            for name, record in checksums.items()
            if record
        )
    with RenamePublication(store, key, {_OUTPUT: output}) as publication:
        written = publication.staging(_OUTPUT)
        Path(first).rename(written)
        try:
            return publication.commit(_OUTPUT, version)
        finally:
            if os.path.lexists(written):  # not published: what was copied is not to be copied again
                Path(written).rename(first)


def _switch(store: ClusterStore, output: OutputTarget, parts: Sequence[_Part]) -> DataVersion:
    """On an object store, where the files are in their place: removes what is to go, and sets the flag."""
    final = store.path(output.path)
    gone = sorted({f"{final}/{name}" for part in parts for name in part.delete})
    store.files.remove(gone)
    store.fs.pipe_file(f"{final}/{output.flag}", b"")
    store.fs.invalidate_cache()
    return fingerprint(store, output.path, output.flag)


def _link(source: str, target: str, names: Iterable[str]) -> None:
    """Puts files of one folder into another: as links, which cost nothing, or as copies where there are none."""
    folders: set[str] = set()
    for name in names:
        here, there = (f"{base}/{name}" if name else base for base in (source, target))
        folder = there.rpartition("/")[0]
        if folder not in folders:
            Path(folder).mkdir(parents=True, exist_ok=True)
            folders.add(folder)
        Path(there).unlink(missing_ok=True)
        try:
            os.link(here, there)
        except OSError:
            shutil.copy2(here, there)
