"""Roll-ups: instances that are read where their members lie, and never written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, NoReturn, TypeVar

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.eviction import StoredVersion
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.rollups import version_of
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import REPLICATING, CopyRules, CopyTarget
from falcon_assets.storage.copying.listed_files import SourceFiles
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.reading import ReadableFolder, ReadableInstance, ReadablePartition
from falcon_assets.storage.kinds.removing import Removal
from falcon_assets.storage.kinds.storage_kind import NOTHING_HELD, StorageKind
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.rollup_store import RollupStore

R = TypeVar("R", ReadableFolder, ReadablePartition)


class _Part(NamedTuple):
    feed: Feed
    instance: datetime
    kind: StorageKind
    path: str
    is_optional: bool

    @property
    def is_there(self) -> bool:
        return self.kind.is_available(self.feed, self.path)


class RollupStorage(StorageKind):
    store: RollupStore

    def __init__(self, store: RollupStore, kind_of: Callable[[ClusterStore], StorageKind]) -> None:
        super().__init__(store)
        self._kinds = {one.feed.name: kind_of(store.store_of(one.feed)) for one in store.members}

    @property
    def connector(self) -> str | None:
        return None

    @property
    def object_stores(self) -> list[ClusterStore]:
        return [store for kind in self._kinds.values() for store in kind.object_stores]

    def require_there(self) -> None:
        for kind in self._kinds.values():
            kind.require_there()

    def instances(self, feed: Feed, spans: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, str]]:
        """All that exist in the spans: whether one is complete is asked for each."""
        paths = InstancePaths(feed, self.store.cluster)
        for instance in sorted({one for span in spans for one in paths.timeline.between(*span)}):
            yield instance, paths.data(instance)

    def instance_at(self, feed: Feed, place: str) -> datetime | None:
        """None: what lies anywhere is of a member."""

    def has(self, path: str) -> bool:
        return self.is_available(self.store.feed, path)

    def is_available(self, feed: Feed, path: str) -> bool:
        parts = list(self._parts(path))
        return bool(parts) and all(one.is_optional or one.is_there for one in parts)

    def why_unavailable(self, feed: Feed, path: str) -> tuple[bool, str]:
        parts = list(self._parts(path))
        lacking = [one for one in parts if not (one.is_optional or one.is_there)]
        if not parts:
            return False, f"no instance of {', '.join(self._kinds)} is in its time"
        if not lacking:
            return True, ""
        first = lacking[0]
        why = first.kind.why_unavailable(first.feed, first.path)[1]
        is_begun = len(lacking) < len(parts)
        return is_begun, f"{len(lacking)} of {len(parts)} members are missing: {_name(first)}: {why}"

    def version(self, path: str, flag: str | None) -> DataVersion:
        parts = [one for one in self._parts(path) if one.is_there]
        return self._put_together(parts, [one.kind.version(one.path, one.feed.availability_flag) for one in parts])

    def reading(
        self, path: str, flag: str | None, staging: LocalStaging | None = None
    ) -> AbstractContextManager[ReadableInstance]:
        return self._read(path, staging)

    @contextmanager
    def _read(self, path: str, staging: LocalStaging | None) -> Iterator[ReadableInstance]:
        with ExitStack() as held:
            parts = [one for one in self._parts(path) if one.is_there]
            read = [
                held.enter_context(one.kind.reading(one.path, one.feed.availability_flag, staging)) for one in parts
            ]
            known = list(zip(parts, read, strict=True))
            yield ReadableInstance(
                self._put_together(parts, [one.version for one in read]),
                tuple(_of_member(part, folder) for part, one in known for folder in one.folders),
                tuple(_of_member(part, partition) for part, one in known for partition in one.partitions),
            )

    def _put_together(self, parts: Sequence[_Part], versions: Sequence[DataVersion]) -> DataVersion:
        if not parts:
            raise StorageError(
                f"cluster {self.store.cluster.name!r}: none of the members of {self.store.feed.name} is there"
            )
        known = zip(parts, versions, strict=True)
        made_of = ((part.feed.name, part.instance, version.version) for part, version in known)
        return DataVersion(version_of(made_of), sum(one.files for one in versions), sum(one.bytes for one in versions))

    def _parts(self, path: str) -> Iterator[_Part]:
        cluster = self.store.cluster
        instance = InstancePaths(self.store.feed, cluster).instance(path)
        if instance is None:
            raise StorageError(f"cluster {cluster.name!r}: {path} is no instance of {self.store.feed.name}")
        for one in self.store.members:
            paths = InstancePaths(one.feed, cluster)
            for at in one.membership.members(instance):
                yield _Part(one.feed, at, self._kinds[one.feed.name], paths.data(at), one.is_optional)

    def publish(
        self,
        key: str,
        outputs: Mapping[str, OutputTarget],
        staging: LocalStaging | None = None,
        held: Mapping[str, HeldData] = NOTHING_HELD,
    ) -> AbstractContextManager[InstancePublication]:
        self._refuse("written")

    def source_files(self, path: str, flag: str | None, left_out: Callable[[str], bool]) -> SourceFiles | None:
        self._refuse("copied")

    def copy_target(self, output: OutputTarget, source: str, rules: CopyRules = REPLICATING) -> CopyTarget:
        self._refuse("copied")

    def kept_versions(self, feed: str, instance: datetime | None = None) -> list[StoredVersion]:
        return []

    def restore(
        self, key: str, output: OutputTarget, version: str, *, dry_run: bool = False
    ) -> tuple[DataVersion, bool]:
        self._refuse("restored")

    def removal(self, flag: str | None) -> Removal:
        self._refuse("removed")

    def _refuse(self, done: str) -> NoReturn:
        names = ", ".join(self._kinds)
        raise StorageError(
            f"feed {self.store.feed.name!r} is a roll-up, which cannot be {done}: its members can: {names}"
        )


def _of_member(part: _Part, read: R) -> R:
    return read if read.member else replace(read, member=part.feed.name)


def _name(part: _Part) -> str:
    return f"{part.feed.name} {format_instant(part.instance)}"
