"""Copies into tables: made in the staging location as copies to files are, and published as outputs are."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.planning.replication.copy_plan import ListedFile
from falcon_assets.storage.copying.copy_target import CopiedPart, CopyRules
from falcon_assets.storage.copying.listed_files import list_folder
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.renaming.copy_target import RenamingCopyTarget
from falcon_assets.storage.kinds.tables.old_versions import path_of
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.catalog import Partition
from falcon_assets.storage.tables.table_store import TableStore

_OUTPUT = "copy"


class TableCopyTarget(RenamingCopyTarget):
    """The staged files become a version of the partition by one call: nobody sees it before it is whole.

    Args:
        store: The tables of the target.
        output: As for any copy; so the others.
        look: Asks the catalog for the partition; None: it is not there.
    """

    def __init__(
        self,
        store: TableStore,
        output: OutputTarget,
        source: str,
        rules: CopyRules,
        look: Callable[[], Partition | None],
    ) -> None:
        super().__init__(store, output, source, rules)
        self._tables, self._look, self._partition = store, look, look()
        folders = [path_of(place) for place in self._partition.places] if self._partition else []
        # A partition that is files, and no folder, comes again as a whole.
        self.place = str(folders[0]) if len(folders) == 1 and folders[0].is_dir() else f"{self.folder}/nothing"

    def fresh(self) -> TableCopyTarget:
        return TableCopyTarget(self._tables, self.output, self.source, self.rules, self._look)

    def version(self) -> DataVersion:
        found = self._look()
        if found is None:
            raise StorageError(f"cluster {self.store.cluster.name!r}: there is nothing at {self.output.path}")
        return DataVersion(found.version, found.files, found.bytes)

    def recover(self, where: str) -> None:
        """A publication leaves nothing that has to be put right: see :mod:`.version_folders`."""

    def published_files(self) -> dict[str, ListedFile]:
        return list_folder(self.store, self.place, None, self.rules.left_out)

    @property
    def is_published(self) -> bool:
        return self._partition is not None

    def publish(
        self, key: str, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile], flag: bytes
    ) -> DataVersion | None:
        if len(parts) > 1:
            raise StorageError(f"{key}: {self.output.path} is one partition, and several sources bring it")
        self.assemble(parts, published)
        with TablePublication(self._tables, key, {_OUTPUT: self.output}) as publication:
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
