"""The compaction of one instance in its store: written beside it, verified, and put in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.errors import StorageError
from falcon_assets.features.compaction.engine import CompactedFiles, CompactionPlan, NewFiles, compact
from falcon_assets.features.compaction.row_files import DataFile
from falcon_assets.model.feed import Feed
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.instances.data_version import DataVersion, version_of
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget, output_target

_OUTPUT = "compacted"


@dataclass(frozen=True)
class CompactedInstance:
    """What was there, and what is there now.

    Attributes:
        new: None: nothing was to gain, so the old one stays; then ``files`` is None, too.
        signature: Of the listing of the new one; None: somebody has added to it since.
    """

    read: DataVersion
    new: DataVersion | None = None
    files: CompactedFiles | None = None
    signature: str | None = None


def compact_instance(
    store: ClusterStore,
    feed: Feed,
    instance: datetime,
    key: str,
    before: Callable[[DataVersion, str | None], object] = lambda read, new: None,
) -> CompactedInstance:
    """Compacts an instance that is there.

    ``key`` names it in errors. ``before`` is called with the version that was read, and the one that is about to be
    published (None: only the store can tell, once it is there), and may wait or raise.

    Raises:
        StorageError: it cannot be compacted, or was written meanwhile; it is unchanged then.
        CancelledError: it was cancelled before anything was published.
    """
    path, flag = InstancePaths(feed, store.cluster).data(instance), feed.availability_flag
    kind, staging = kind_of(store), LocalStaging.of(store)
    # Before the first look at its files: what is replaced in the end must still be that.
    signature = kind.listing(path, flag).signature
    output = _output(feed, instance, path, store, signature)
    with kind.publish(key, {_OUTPUT: output}, staging) as publication:
        read = kind.version(path, flag)
        files, plan = list(_files(kind, path, flag)), _plan(feed)
        if not _is_worth_it(files, plan):
            return CompactedInstance(read)
        with staging.folder() as spill:
            done = compact(files, plan, _new_files(store, publication), spill)
        before(read, _version_to_be(kind, publication))
        if kind_of(store).listing(path, flag).signature != signature:
            raise StorageError(f"{key}: {path} was written meanwhile: nothing is published")
        current_cancellation().make_final()  # what is half published is published
        new = publication.commit(_OUTPUT)
    kind = kind_of(store)  # each is for one look
    now = kind.listing(path, flag).signature
    there = {_bare(file.name) for file in _files(kind, path, flag)}
    is_ours = there == {*map(_bare, done.files)} or now == new.version  # a table may have named them
    return CompactedInstance(read, new, done, now if is_ours else None)


def _bare(name: str) -> str:
    return name.rpartition("/")[2]


def _output(feed: Feed, instance: datetime, path: str, store: ClusterStore, signature: str) -> OutputTarget:
    output = replace(output_target(feed, instance, path), replaces=signature)
    if feed.compact and feed.compact.replaces:
        output = replace(output, keeps=None)
    return replace(output, format=feed.format) if feed.table_on(store.cluster.name) else output


def _files(kind: StorageKind, path: str, flag: str | None) -> Iterator[DataFile]:
    found, fs = kind.source_files(path, flag, is_hidden), kind.store.fs
    if found is None:
        raise StorageError(f"there is nothing at {path} any more")
    for name, file in found.files.items():
        yield DataFile(name, file.size, partial(fs.open, found.path(name), "rb"))


def _plan(feed: Feed) -> CompactionPlan:
    assert feed.compact is not None
    sort, size = feed.compact.sort, feed.compact.file_bytes
    return CompactionPlan(feed.format, sort, size, feed.options, feed.schema_, feed.partitions)


def _is_worth_it(files: list[DataFile], plan: CompactionPlan) -> bool:
    """Not where nothing is there, where it is a file without a folder, or where nothing would change."""
    filled = [one for one in files if one.size]
    if not filled or not all(one.name for one in filled):
        return False
    return bool(plan.sort) or len(filled) > len({one.folder for one in filled})


def _new_files(store: ClusterStore, publication: InstancePublication) -> NewFiles:
    folder, is_local = publication.staging(_OUTPUT), publication.staging_url(_OUTPUT).startswith("file:")

    def create(name: str) -> AbstractContextManager[IO[bytes]]:
        place = f"{folder}/{name}"
        parent = place.rpartition("/")[0]
        if is_local:
            Path(parent).mkdir(parents=True, exist_ok=True)
            return Path(place).open("xb")
        store.fs.makedirs(parent, exist_ok=True)
        opened: AbstractContextManager[IO[bytes]] = store.fs.open(place, "wb")
        return opened

    def read(name: str) -> AbstractContextManager[IO[bytes]]:
        place = f"{folder}/{name}"
        if is_local:
            return Path(place).open("rb")
        opened: AbstractContextManager[IO[bytes]] = store.fs.open(place, "rb")
        return opened

    return NewFiles(create, read)


def _version_to_be(kind: StorageKind, publication: InstancePublication) -> str | None:
    """The version of what is staged, on file systems of this machine."""
    folder, files = Path(publication.staging(_OUTPUT)), kind.store.files
    if kind.cannot & {Ability.RENAME, Ability.LOCK}:
        return None
    contents = []
    for path in (one for one in folder.rglob("*") if one.is_file()):
        size, checksum = files.content(str(path), path.stat().st_size)
        contents.append((str(path.relative_to(folder)).encode(), size, bytes.fromhex(checksum)))
    return version_of(contents).version
