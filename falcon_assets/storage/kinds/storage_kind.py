"""The protocol of all kinds of storage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import MappingProxyType

from falcon_assets.errors import StorageError
from falcon_assets.model.feed import Feed
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, StoredVersion
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.old_folders import FolderPass
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import REPLICATING, CopyRules, CopyTarget
from falcon_assets.storage.copying.listed_files import SourceFiles
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.instances.instance_files import Listing
from falcon_assets.storage.instances.old_folders import Visit
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.reading import ReadableInstance
from falcon_assets.storage.kinds.removing import Removal
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget

READERS_SECONDS = 60.0
"""How long a reader may take to list one folder."""
_NEVER = datetime.max.replace(tzinfo=UTC)
NOTHING_HELD: Mapping[str, HeldData] = MappingProxyType({})
KEEPS_NONE = "the feed keeps no versions: declare `versions` to keep those that come"


class StorageKind(ABC):
    """The instances on a store, each named by its path below the root.

    Nothing outside of :mod:`falcon_assets.storage.kinds` asks which kind it is: callers use these methods, or ask for
    an ability by name. All raise StorageError if the store fails or refuses (:meth:`has`, :meth:`move` and
    :meth:`is_untouched` also OSError), and for a feed ExpressionError (its template has an unknown variable or reaches
    above its prefix) and UnknownEntityError (it is not on the store's cluster).
    """

    def __init__(self, store: ClusterStore) -> None:
        self.store = store

    @property
    def cannot(self) -> frozenset[Ability]:
        return self.store.files.cannot

    @property
    def connector(self) -> str | None:
        """Hadoop's scheme of the store, if Spark needs a connector that may be used; None: it needs or has none."""
        return None

    @property
    def object_store(self) -> ClusterStore | None:
        """The object store with its files, for which Spark needs a connector or copies; None: it needs neither."""
        return self.store if Ability.WITHOUT_CONNECTOR in self.cannot else None

    @property
    def object_stores(self) -> list[ClusterStore]:
        """Those that its instances are read from."""
        return [self.object_store] if self.object_store else []

    def require_there(self) -> None:  # noqa: B027 - a store may answer nothing while it is away
        """Raises UnreachableError if the store, which is known to have had instances, is not there."""

    def away(self) -> list[str]:
        """Returns what is away of the store while the rest of it can be used, a sentence for each part."""
        return []

    @abstractmethod
    def instances(self, feed: Feed, spans: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, str]]:
        """Returns instances in spans, both ends included, complete or not, with their paths, in that order.

        They are found on demand.
        """

    @abstractmethod
    def instance_at(self, feed: Feed, place: str) -> datetime | None:
        """Returns the instance with data at a place, as :func:`.normal_place` has it, or around it; None: none has."""

    def asked_together(self, found: Iterable[tuple[datetime, str]]) -> Iterator[tuple[datetime, str]]:
        """Passes on instances for which other methods will be called; a store may ask for many at once."""
        return iter(found)

    def stored(self, feed: Feed) -> list[StoredInstance]:
        """Returns every instance in the feed's locations that retention may remove, oldest first."""
        paths = InstancePaths(feed, self.store.cluster)
        if paths.template.missing_for(feed.frequency):
            raise StorageError(f"{paths.template.text!r} is coarser than the frequency {feed.frequency}")
        found = sorted(self.instances(feed, [(paths.timeline.start, _NEVER)]))
        return [StoredInstance(instance, (StoredLocation("data", path, paths.prefix),)) for instance, path in found]

    @property
    def tells_changes(self) -> bool:
        """Whether the store knows when an entry was added or deleted, so that not all is listed again."""
        return False

    def visits(self, feed: Feed, now: datetime, folder_pass: FolderPass) -> Iterator[Visit]:
        """Visits all places that can hold instances up to ``now`` on the falcon clock, in order, from where a pass is.

        Yields after each request, and for each unchanged place. A place that is refused is a ``problem``, not raised.
        """
        paths = InstancePaths(feed, self.store.cluster)
        if paths.timeline.start <= now:
            yield Visit(paths.prefix, tuple(self.instances(feed, [(paths.timeline.start, now)])))

    @abstractmethod
    def has(self, path: str) -> bool: ...

    def is_available(self, feed: Feed, path: str) -> bool:
        """Whether the instance at ``path`` is complete; raises StorageError if that is unknown."""
        return self.has(path)

    @abstractmethod
    def why_unavailable(self, feed: Feed, path: str) -> tuple[bool, str]:
        """Returns whether anything is there of an instance that is not complete, and what it lacks."""

    def listing(self, path: str, flag: str | None) -> Listing:
        """Shows, without reading it, whether the instance at ``path`` may be another one than before."""
        return Listing(self.version(path, flag).version, None)

    @abstractmethod
    def version(self, path: str, flag: str | None) -> DataVersion:
        """Returns the version at ``path``; raises StorageError also if nothing is there or it keeps changing."""

    def records_known(self, path: str) -> int | None:
        """Returns the number of records at ``path`` where the store has it; None: its files say it."""
        return None

    @abstractmethod
    def reading(
        self, path: str, flag: str | None, staging: LocalStaging | None = None
    ) -> AbstractContextManager[ReadableInstance]:
        """Gives the instance for Spark within the context: a copy in ``staging`` if Spark cannot reach the store."""

    @abstractmethod
    def publish(
        self,
        key: str,
        outputs: Mapping[str, OutputTarget],
        staging: LocalStaging | None = None,
        held: Mapping[str, HeldData] = NOTHING_HELD,
    ) -> AbstractContextManager[InstancePublication]:
        """Gives a publication of ``outputs``: readers see the whole old instance, the whole new one or none.

        Entering repairs what a crashed run left, and keeps other runs away (StorageError) or overtakes them. Leaving
        drops what was not committed. ``staging`` is for writing, if Spark cannot reach the store. ``held``, of all
        outputs: nothing is written, and what was kept aside is published.
        """

    def repair(self, key: str, output: OutputTarget) -> None:  # noqa: B027 - a store may switch in one step
        """Puts an instance back that a killed publication left between its old and its new version.

        Raises BeingWrittenError if it is being published.
        """

    @abstractmethod
    def source_files(self, path: str, flag: str | None, left_out: Callable[[str], bool]) -> SourceFiles | None: ...

    @abstractmethod
    def copy_target(self, output: OutputTarget, source: str, rules: CopyRules = REPLICATING) -> CopyTarget: ...

    def beside(self, other: StorageKind, path: str) -> StorageKind:
        """Returns the part of the store that gets an instance, as near to ``other`` as is possible; often itself."""
        return self

    def has_begun(self, path: str) -> bool:
        """Whether a publication or a copy of the instance has begun here and was not completed, or is kept aside."""
        return False

    @abstractmethod
    def kept_versions(self, feed: str, instance: datetime | None = None) -> list[StoredVersion]: ...

    def path_of_version(self, feed: Feed, instance: datetime, path: str, version: str) -> str | None:
        """Returns the path of a present or kept version, as :meth:`reading` takes it; None: it is deleted."""
        if self.is_available(feed, path) and self.version(path, feed.availability_flag).version == version:
            return path
        kept = self.kept_versions(feed.name, instance)
        return next((self._kept_path(one) for one in kept if one.version == version and one.path), None)

    def _kept_path(self, kept: StoredVersion) -> str:
        return kept.path

    @abstractmethod
    def restore(
        self, key: str, output: OutputTarget, version: str, *, dry_run: bool = False
    ) -> tuple[DataVersion, bool]:
        """Publishes a kept version, unless it is the present one; gives the present one, and whether it is new.

        After a StorageError the instance is unchanged.
        """

    def move(self, path: str, target: StorageKind, target_path: str) -> bool:
        """Moves an instance at once to a free place; False, and nothing done, if that is impossible."""
        return False

    @abstractmethod
    def removal(self, flag: str | None) -> Removal: ...

    def is_untouched(self, location: StoredLocation, flag: str | None) -> bool:
        """Whether nothing was removed yet of an instance with this first location; False if unknown."""
        return self.has(location.path)  # it goes in one step

    def purge(self, patience: float = READERS_SECONDS) -> None:  # noqa: B027 - a store may free space at once
        """Frees the space of everything that was set aside so far, by this pass or one that was killed.

        Waits until the last of it has been out of place for ``patience`` seconds; the next call retries what failed.
        """

    def is_purged(self) -> bool:
        return True

    def kept_aside(self) -> list[tuple[datetime, str]]:
        """Returns outputs that are kept aside, unpublished, and since when in real time; a full disk is freed by it."""
        return []

    def measure_aside(self, place: str) -> int:
        """Returns the bytes of what is kept aside at a place."""
        return 0

    def discard_aside(self, place: str) -> None:  # noqa: B027 - where nothing is kept aside
        """Takes away what is kept aside at a place; :meth:`purge` frees its space."""
