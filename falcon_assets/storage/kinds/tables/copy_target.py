"""Copies into tables: made in the staging location as copies to files are, and published as outputs are."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.storage.copying.copy_plan import ListedFile
from falcon_assets.storage.copying.copy_target import CopiedPart, CopyRules, CopyTarget
from falcon_assets.storage.copying.listed_files import list_folder
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.hdfs.copy_target import HdfsCopyTarget
from falcon_assets.storage.kinds.objects.copy_target import ObjectCopyTarget
from falcon_assets.storage.kinds.renaming.copy_target import RenamingCopyTarget
from falcon_assets.storage.kinds.tables.instance_version import version_of
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.kinds.tables.table_folder import mounted_path
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.catalog import Partition
from falcon_assets.storage.tables.table_store import TableStore

_OUTPUT = "copy"


class _IntoTable(CopyTarget):
    """Makes the staged files a version of the instance as those of a publication: see :class:`TablePublication`.

    ``look`` asks the catalog for the partitions of the instance, by the folder of each in a copy; empty: it is not
    there.
    """

    def __init__(
        self,
        store: TableStore,
        output: OutputTarget,
        source: str,
        rules: CopyRules,
        look: Callable[[], dict[str, Partition]],
    ) -> None:
        super().__init__(store, output, source, rules)
        self._tables, self._look, self._partitions = store, look, look()
        self.place = self._present()

    def fresh(self) -> CopyTarget:
        return type(self)(self._tables, self.output, self.source, self.rules, self._look)

    def version(self) -> DataVersion:
        found = self._look()
        if not found:
            raise StorageError(f"cluster {self.store.cluster.name!r}: there is nothing at {self.output.path}")
        return version_of([*found.values()])

    def recover(self, where: str) -> None:
        """Does nothing: a publication leaves nothing to repair, see :mod:`.version_folders`."""

    def _present(self) -> str:
        """Returns where files of the instance are that need not be copied again; a missing folder if there are none."""
        return f"{self.folder}/nothing"

    @property
    def is_published(self) -> bool:
        return bool(self._partitions)

    def _require_one(self, key: str, parts: Sequence[CopiedPart]) -> CopiedPart:
        if len(parts) > 1:
            raise StorageError(f"{key}: {self.output.path} is in a table, and several sources bring it")
        return parts[0]


class ObjectTableCopyTarget(_IntoTable, ObjectCopyTarget):
    """Stages all of an instance on the object store, which copies it to its place in the table."""

    in_place = False

    def published_files(self) -> dict[str, ListedFile]:
        return {}  # they have another folder each time

    def publish(
        self, key: str, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile], flag: bytes
    ) -> DataVersion | None:
        part = self._require_one(key, parts)
        self.store.files.remove(f"{self.written}/{name}" for name in self.staged_files().keys() - part.copied.keys())
        with TablePublication(
            self._tables, key, {_OUTPUT: self.output}, there=self.written, is_copy=True
        ) as publication:
            return publication.commit(_OUTPUT)


class HdfsTableCopyTarget(_IntoTable, HdfsCopyTarget):
    def published_files(self) -> dict[str, ListedFile]:
        return {}  # they have another folder each time

    def publish(
        self, key: str, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile], flag: bytes
    ) -> DataVersion | None:
        part = self._require_one(key, parts)
        for name in self.staged_files().keys() - part.copied.keys():
            self.fs.rm(f"{self.written}/{name}")  # not verified
        with TablePublication(self._tables, key, {_OUTPUT: self.output}, is_copy=True) as publication:
            staging = publication.staging(_OUTPUT)
            self.fs.mv(self.written, staging)
            try:
                return publication.commit(_OUTPUT)
            except UnreachableError:
                raise  # it may be the partition
            except StorageError:
                self.fs.mv(staging, self.written)  # what was copied is not to be copied again
                raise


class TableCopyTarget(_IntoTable, RenamingCopyTarget):
    def _present(self) -> str:
        return _common_folder(self._partitions) or super()._present()

    def published_files(self) -> dict[str, ListedFile]:
        return list_folder(self.store, self.place, None, self.rules.left_out)

    def publish(
        self, key: str, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile], flag: bytes
    ) -> DataVersion | None:
        self._require_one(key, parts)
        self.assemble(parts, published)
        with TablePublication(self._tables, key, {_OUTPUT: self.output}, is_copy=True) as publication:
            folder = publication.staging(_OUTPUT)
            self._move(self.written, folder)
            try:
                return publication.commit(_OUTPUT)
            except UnreachableError:
                raise  # it may be the partition
            except StorageError:
                self._move(folder, self.written)  # what was copied is not to be copied again
                raise

    def discard(self, *args: Any) -> None:
        super().discard()  # what is staged is no partition: nobody reads it

    def _move(self, source: str, target: str) -> None:
        try:
            Path(source).rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.copytree(source, target)
            shutil.rmtree(source)


def _common_folder(partitions: Mapping[str, Partition]) -> str | None:
    """Returns the folder with all files, as in a copy; None: there is none, and all are copied again."""
    found = set()
    for name, one in partitions.items():
        folder = mounted_path(one.places[0]) if len(one.places) == 1 else None
        if folder is None or not Path(folder).is_dir() or (name and not folder.endswith(f"/{name}")):
            return None
        found.add(folder.removesuffix(f"/{name}"))
    return found.pop() if len(found) == 1 else None
