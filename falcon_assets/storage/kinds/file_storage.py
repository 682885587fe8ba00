"""Operations shared by the kinds of storage whose instances are files."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.model.feed import Feed
from falcon_assets.planning.data_usage import normal_place
from falcon_assets.planning.eviction import StoredInstance, StoredLocation
from falcon_assets.planning.instance_paths import FolderSpans, InstancePaths
from falcon_assets.planning.old_folders import FolderPass
from falcon_assets.storage.copying.listed_files import SourceFiles, list_files
from falcon_assets.storage.errors import driver_explained, explained
from falcon_assets.storage.instances.data_version import DataVersion, count_files, fingerprint
from falcon_assets.storage.instances.instance_files import Listing, list_instance
from falcon_assets.storage.instances.old_folders import Visit, visits
from falcon_assets.storage.instances.stored_instances import stored_instances
from falcon_assets.storage.instances.template_walk import Names, TemplateWalk, listed_names
from falcon_assets.storage.instances.version_pointer import data_path
from falcon_assets.storage.kinds.reading import ReadableFolder, ReadableInstance
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.local_staging import LocalStaging

_NO_PLACE = (errno.ELOOP, errno.ENAMETOOLONG)


class FileStorage(StorageKind):
    def require_there(self) -> None:
        self.store.require_root()
        root = self.store.path("")
        if not self.store.files.is_mounted(root):
            raise UnreachableError(f"cluster {self.store.cluster.name!r}: {root} is not there: is its disk mounted?")

    def instances(self, feed: Feed, spans: Sequence[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, str]]:
        """Lists the existing folders of the path template that can hold instances of those spans, each once."""
        cluster = self.store.cluster
        paths = InstancePaths(feed, cluster)
        if not spans:
            return
        shown = FolderSpans.of(paths, spans)

        def names(folder: str, depth: int) -> Names:
            if "${" not in walk.steps[depth]:
                return {walk.steps[depth]: None}
            known = shown.folders(walk.levels[depth]) if depth + 1 < len(walk.steps) else None
            if known is None:
                return listed_names(self.store, folder)
            return {path[len(folder) + 1 :]: None for path in known if path.startswith(f"{folder}/")}

        walk = TemplateWalk(paths.template, names, shown.may_hold)
        for path in walk.paths():
            instance = paths.instance(path) if shown.may_hold(paths.template, path) else None
            if instance and any(first <= instance <= last for first, last in spans):
                yield instance, path

    def stored(self, feed: Feed) -> list[StoredInstance]:
        return stored_instances(self.store, feed)

    @property
    def tells_changes(self) -> bool:
        return self.store.files.tells_changes

    def visits(self, feed: Feed, now: datetime, folder_pass: FolderPass) -> Iterator[Visit]:
        return visits(self.store, feed, now, folder_pass)

    def instance_at(self, feed: Feed, place: str) -> datetime | None:
        paths, root = InstancePaths(feed, self.store.cluster), normal_place(self.url("")).rstrip("/")
        if not place.startswith(f"{root}/"):
            return None
        below = place[len(root) + 1 :].split("/")
        return paths.instance("/" + "/".join(below[: paths.template.text.count("/")]))

    def is_available(self, feed: Feed, path: str) -> bool:
        """True if the flag is a file in it, or, without flag, the path exists; false behind links out of the root."""
        flag = feed.availability_flag
        try:
            place = self.store.path(path if flag is None else f"{path}/{flag}")
        except UnreachableError:
            raise
        except StorageError:
            return False
        # Not fs.exists(): it says of what may not be read that it is not there.
        with explained(self.store.cluster.name, f"look at {path}"):
            try:
                found = self.store.fs.info(place)
            except (FileNotFoundError, NotADirectoryError):
                return False
            except OSError as error:
                if error.errno in _NO_PLACE:
                    return False
                raise
        return flag is None or found["type"] == "file"

    def why_unavailable(self, feed: Feed, path: str) -> tuple[bool, str]:
        where, place = self.store.shown(path), self.store.path(path)
        with driver_explained(self.store.cluster.name, f"look at {path}"):
            if not self._is_there(place):
                return False, f"there is nothing at {where}"
            if feed.availability_flag and not self._is_there(f"{place}/{feed.availability_flag}"):
                return True, f"there is no {feed.availability_flag} in {where}"
        return True, f"{where} changes while it is read, or has links that leave the store"

    def listing(self, path: str, flag: str | None) -> Listing:
        return list_instance(self.store, path, flag)

    def version(self, path: str, flag: str | None) -> DataVersion:
        return fingerprint(self.store, path, flag)

    def has(self, path: str) -> bool:
        return bool(self.store.fs.exists(self.store.path(path)))

    def is_untouched(self, location: StoredLocation, flag: str | None) -> bool:
        return bool(self.store.fs.lexists(self.store.path(location.path)))  # it goes in one step

    def source_files(self, path: str, flag: str | None, left_out: Callable[[str], bool]) -> SourceFiles | None:
        if not self.store.fs.exists(self.store.path(f"{path}/{flag}" if flag else path)):
            return None
        data = data_path(self.store, path, flag)
        return SourceFiles(self.store.path(data), list_files(self.store, data, flag, left_out))

    def reading(
        self, path: str, flag: str | None, staging: LocalStaging | None = None
    ) -> AbstractContextManager[ReadableInstance]:
        return self._read_in_place(path, flag)

    @contextmanager
    def _read_in_place(self, path: str, flag: str | None) -> Iterator[ReadableInstance]:
        version, files = count_files(self.store, path, flag)
        yield ReadableInstance(version, (ReadableFolder(self.url(path), files),))

    def url(self, path: str) -> str:
        return self.store.url(path)

    def _is_there(self, place: str) -> bool:
        try:
            self.store.fs.info(place)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True
