"""Outputs on their way to where readers find them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from falcon_assets.model.feed import Feed
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, StoredVersion
from falcon_assets.planning.old_folders import FolderPass
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import REPLICATING, CopyRules, CopyTarget
from falcon_assets.storage.copying.listed_files import SourceFiles
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.instance_files import Listing
from falcon_assets.storage.instances.old_folders import Visit
from falcon_assets.storage.kinds.reading import ReadableInstance
from falcon_assets.storage.kinds.removing import Removal
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget


class InstancePublication(Protocol):
    """The outputs of one process instance on their way to their final paths."""

    def staging(self, name: str) -> str:
        """Absolute path that output ``name`` is to be written to; nothing is there yet."""

    def staging_url(self, name: str) -> str:
        """The same as a URL for Spark."""

    def commit(self, name: str) -> DataVersion:
        """Puts what was written for output ``name`` in place of its old instance, complete and with its flag.

        Raises:
            StorageError: nothing was written, or the store refuses; the old instance is then where it was.
        """


READERS_SECONDS = 60.0
"""How long a reader may take to list one folder."""
KEEPS_NONE = "the feed keeps no versions: declare `versions` to keep those that come"
"""Why nothing can be restored of a feed without ``versions``."""


class StorageKind(ABC):
    """The instances on a store; each is named by its path below the store's root, whatever lies there.

    Nothing outside of :mod:`falcon_assets.storage.kinds` asks which kind it is: it calls these methods, or asks for an
    ability by name.

    What a process reads and writes passes through here in three steps, so that engines know nothing of kinds:
    :meth:`reading` says where Spark reads an input, and with it the version that is read; :meth:`publish` says where
    Spark writes an output (:meth:`InstancePublication.staging_url`), and then puts it where readers find it
    (:meth:`InstancePublication.commit`). Both are contexts that last as long as Spark works, and clean up behind it.
    """

    def __init__(self, store: ClusterStore) -> None:
        self.store = store
        """The store."""

    @property
    @abstractmethod
    def cannot(self) -> frozenset[Ability]:
        """What it cannot do."""

    @property
    def connector(self) -> str | None:
        """Hadoop's scheme of the store, where Spark needs a connector that may be used; None: it needs or has none."""
        return None

    @property
    def object_store(self) -> ClusterStore | None:
        """The object store that its files lie on, for which Spark needs a connector or copies; None: it needs neither.

        Raises:
            StorageError: a catalog that has to be asked does not answer.
        """
        return self.store if Ability.WITHOUT_CONNECTOR in self.cannot else None

    @abstractmethod
    def require_there(self) -> None:
        """Does nothing where the store is there; asked where instances are known to have been in it.

        Raises:
            UnreachableError: it is not, so that nobody knows whether they went.
        """

    @abstractmethod
    def instances(self, feed: Feed, spans: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, str]]:
        """The instances of ``feed`` that have something in the store, complete or not, each with its path.

        In the order of their paths, found as they are asked for.

        Args:
            feed: The feed.
            spans: Spans of nominal times, both ends included.

        Raises:
            StorageError: the store cannot be read.
            ExpressionError: the path template names an unknown variable.
            UnknownEntityError: the feed is not on the store's cluster.
        """

    @abstractmethod
    def instance_at(self, feed: Feed, place: str) -> datetime | None:
        """The instance of ``feed`` whose data is at a place, or a file of which is; None: none has any there.

        Args:
            feed: The feed.
            place: A path or URL of a file or folder, as :func:`.normal_place` has it.

        Raises:
            StorageError: the store cannot be asked.
            ExpressionError: as :meth:`instances`.
        """

    def asked_together(self, found: Iterable[tuple[datetime, str]]) -> Iterator[tuple[datetime, str]]:
        """Passes on the instances of a feed at these paths, which the other methods will be called with one by one.

        A store that can be asked about many of them at once is, as they come.

        Raises:
            StorageError: the store cannot be asked.
        """
        return iter(found)

    @abstractmethod
    def stored(self, feed: Feed) -> list[StoredInstance]:
        """What retention may touch: every instance that has something in the feed's locations, oldest first.

        Raises:
            StorageError: as :meth:`instances`, or several instances would go where one is decided on.
            ExpressionError: a template names an unknown variable or reaches above its prefix by ``..``.
            UnknownEntityError: the feed is not on the store's cluster.
        """

    @property
    @abstractmethod
    def tells_changes(self) -> bool:
        """Whether the store tells when something came or went, so that not all of it has to be listed again."""

    @abstractmethod
    def visits(self, feed: Feed, now: datetime, folder_pass: FolderPass) -> Iterator[Visit]:
        """Goes through all places that can hold instances of ``feed``, in order, from where a pass is.

        Yields after each request to the store, and for each place that needs none because it did not change.

        Args:
            feed: The feed.
            now: Instances after it do not exist yet; on the falcon clock.
            folder_pass: The present pass, as far as it is.

        Raises:
            StorageError: the store fails; what it refuses of one place is a problem of that visit instead.
            ExpressionError: the path template names an unknown variable.
        """

    @abstractmethod
    def has(self, path: str) -> bool:
        """Whether anything is there of the instance at ``path``.

        Raises:
            StorageError: the store refuses to say; OSError: likewise.
        """

    @abstractmethod
    def is_available(self, feed: Feed, path: str) -> bool:
        """Whether the instance at ``path`` is complete.

        Raises:
            StorageError: the store refuses to say, so that nobody knows.
        """

    @abstractmethod
    def why_unavailable(self, feed: Feed, path: str) -> tuple[bool, str]:
        """Whether anything is there of an instance that could not be read as a complete one, and what it lacks.

        Raises:
            StorageError: the store cannot be asked.
        """

    @abstractmethod
    def listing(self, path: str, flag: str | None) -> Listing:
        """What shows, without reading it, that the instance at ``path`` may be another one than before.

        Raises:
            StorageError: nothing is there, or it cannot be listed.
        """

    @abstractmethod
    def version(self, path: str, flag: str | None) -> DataVersion:
        """What the instance at ``path`` holds; ``flag`` is the name of the feed's availability flag.

        Raises:
            StorageError: nothing is there, it cannot be read, or it keeps changing.
        """

    @abstractmethod
    def reading(
        self, path: str, flag: str | None, staging: LocalStaging | None = None
    ) -> AbstractContextManager[ReadableInstance]:
        """The instance at ``path`` for Spark, which may read it within the context.

        Args:
            path: The instance.
            flag: As for :meth:`version`.
            staging: Where it is copied to, if Spark cannot reach the store; None: it can.

        Raises:
            StorageError: on entering: as :meth:`version`; or it is not complete any more, or cannot be copied.
        """

    @abstractmethod
    def publish(
        self, key: str, outputs: Mapping[str, OutputTarget], staging: LocalStaging | None = None
    ) -> AbstractContextManager[InstancePublication]:
        """A publication of ``outputs`` (by output name): readers see the whole old instance, the whole new one or none.

        On entering, what a crashed run left at each output is repaired, and other runs are kept away or overtaken. On
        leaving, what was not committed is dropped.

        Args:
            key: The process instance, for messages.
            outputs: Where they go, none within another.
            staging: Where they are written, if Spark cannot reach the store; None: it can.

        Raises:
            StorageError: the outputs cannot be published here; on entering: one is being written by another run, is not
                fit to be written, or the store refuses.
        """

    @abstractmethod
    def source_files(self, path: str, flag: str | None, left_out: Callable[[str], bool]) -> SourceFiles | None:
        """See :class:`.CopySource`."""

    @abstractmethod
    def copy_target(self, output: OutputTarget, source: str, rules: CopyRules = REPLICATING) -> CopyTarget:
        """Where the part of an instance that a source brings is copied to; the source's name is unique among them."""

    @abstractmethod
    def kept_versions(self, feed: str, instance: datetime | None = None) -> list[StoredVersion]:
        """The versions of the instances of a feed, or of one of them, that were replaced and are kept.

        Raises:
            StorageError: the store cannot be read.
        """

    def path_of_version(self, feed: Feed, instance: datetime, path: str, version: str) -> str | None:
        """Where a version of an instance lies, as :meth:`reading` takes it; None: nowhere any more.

        Args:
            feed: Its feed.
            instance: The instance.
            path: Of the instance.
            version: The data version: the present one, or one that is kept.

        Raises:
            StorageError: the store cannot be read.
        """
        if self.is_available(feed, path) and self.version(path, feed.availability_flag).version == version:
            return path
        kept = self.kept_versions(feed.name, instance)
        return next((self._kept_path(one) for one in kept if one.version == version and one.path), None)

    def _kept_path(self, kept: StoredVersion) -> str:
        """As :meth:`reading` takes it."""
        return kept.path

    @abstractmethod
    def restore(
        self, key: str, output: OutputTarget, version: str, *, dry_run: bool = False
    ) -> tuple[DataVersion, bool]:
        """Publishes a version that is kept, in place of the present one; gives the present one, and whether it is new.

        Nothing is done where it is the present one already.

        Args:
            key: The instance, for messages.
            output: The instance, which keeps what is replaced.
            version: The version.
            dry_run: Whether to make sure only that it can be done.

        Raises:
            StorageError: it is not kept, is not any more what it was, a run is writing the instance, or the store
                refuses; the present version is then where it was.
        """

    @abstractmethod
    def move(self, path: str, target: StorageKind, target_path: str) -> bool:
        """Moves an instance at once to a place where nothing is; False, and nothing done, where that cannot be.

        Raises:
            OSError: as the store says.
        """

    @abstractmethod
    def removal(self, flag: str | None) -> Removal:
        """How locations of a feed go, whose availability flag has that name; :meth:`purge` frees their space."""

    @abstractmethod
    def is_untouched(self, location: StoredLocation, flag: str | None) -> bool:
        """Whether nothing was removed yet of an instance whose first location this is; False where nobody can tell.

        Raises:
            OSError: as the store says.
        """

    @abstractmethod
    def purge(self, patience: float = READERS_SECONDS) -> None:
        """Frees the space of everything that was set aside so far, by this pass or one that was killed.

        Waits until the last of it has been out of its place for ``patience`` seconds; not at all where nothing was set
        aside. What cannot be removed is left to the next pass.
        """

    @abstractmethod
    def is_purged(self) -> bool:
        """Whether there is nothing that :meth:`purge` could free."""
