"""Copies into tables: made in the staging location as copies to files are, and published as outputs are."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.copy_plan import CopyRecord, ListedFile
from falcon_assets.storage.copying.copy_target import COPY, CopiedPart, CopyRules, StagedCopyTarget
from falcon_assets.storage.copying.listed_files import list_folder
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.objects.copy_target import ObjectCopyTarget
from falcon_assets.storage.kinds.renaming.copy_target import MountedCopyTarget, RenamingCopyTarget
from falcon_assets.storage.kinds.tables.look import version_of
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.kinds.tables.table_folder import mounted_path
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.catalog import Partition
from falcon_assets.storage.tables.table_store import TableStore


class _IntoTable(StagedCopyTarget):
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

    def fresh(self) -> StagedCopyTarget:
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

    def published_files(self) -> dict[str, ListedFile]:
        return {}  # they have another folder each time

    def publication(
        self, key: str, records: Mapping[str, CopyRecord | None]
    ) -> AbstractContextManager[InstancePublication]:
        there = self.written if Ability.RENAME in self.store.files.cannot else None
        return TablePublication(self._tables, key, {COPY: self.output}, there=there, is_copy=True)

    def publish(self, key: str, parts: Sequence[CopiedPart], *others: Any) -> DataVersion | None:
        if len(parts) > 1:
            raise StorageError(f"{key}: {self.output.path} is in a table, and several sources bring it")
        return super().publish(key, parts, *others)


class ObjectTableCopyTarget(_IntoTable, ObjectCopyTarget):
    """Stages all of an instance on the object store, which copies it to its place in the table."""

    def assemble(
        self, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile]
    ) -> Mapping[str, CopyRecord | None]:
        unverified = self.staged_files().keys() - parts[0].copied.keys()
        self.store.files.remove(f"{self.written}/{name}" for name in unverified)
        return {}


class HdfsTableCopyTarget(_IntoTable, RenamingCopyTarget):
    pass


class TableCopyTarget(_IntoTable, MountedCopyTarget):
    def _present(self) -> str:
        return _common_folder(self._partitions) or super()._present()

    def published_files(self) -> dict[str, ListedFile]:
        return list_folder(self.store, self.place, None, self.rules.left_out)

    def discard(self, *args: Any) -> None:
        super().discard()  # what is staged is no partition: nobody reads it

    def move(self, path: str, place: str) -> None:
        try:
            super().move(path, place)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.copytree(path, place)
            shutil.rmtree(path)


def _common_folder(partitions: Mapping[str, Partition]) -> str | None:
    """Returns the folder with all files, as in a copy; None: there is none, and all are copied again."""
    found = set()
    for name, one in partitions.items():
        folder = mounted_path(one.places[0]) if len(one.places) == 1 else None
        if folder is None or not Path(folder).is_dir() or (name and not folder.endswith(f"/{name}")):
            return None
        found.add(folder.removesuffix(f"/{name}"))
    return found.pop() if len(found) == 1 else None
