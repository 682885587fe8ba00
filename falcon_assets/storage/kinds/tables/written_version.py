"""Written files of an output in a table, on their way to the folder of its version."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import IO

from falcon_assets.storage.instances.data_files import remove_side_files
from falcon_assets.storage.kinds.objects.written import LocalWritten, StoreWritten, Written
from falcon_assets.storage.kinds.tables.hdfs_folder import HdfsFolder, HdfsWritten
from falcon_assets.storage.kinds.tables.table_folder import TableFolder
from falcon_assets.storage.local_staging import LocalStaging


class MountedWritten(Written):
    def __init__(self, place: str) -> None:
        self._place = place

    def place(self, name: str) -> str:
        return self._place

    def url(self, name: str) -> str:
        return f"file://{self._place}"

    def files(self, name: str) -> list[str]:
        remove_side_files(Path(self._place), keep=None)
        return sorted(str(one.relative_to(self._place)) for one in Path(self._place).rglob("*") if one.is_file())

    def open(self, name: str, file: str) -> AbstractContextManager[IO[bytes]]:
        return Path(self._place, file).open("rb")

    def replace(self, name: str, file: str, by: Path) -> None:
        place = Path(self._place, file)
        new = place.with_name(f".{place.name}")  # not over it: a partition that is there may share the file
        shutil.copyfile(by, new)
        new.replace(place)

    def bring(self, name: str, files: Iterable[str], final: str, check: Callable[[], None]) -> None:
        pass  # it is there


def written_version(
    held: ExitStack, name: str, folder: TableFolder, place: str, staging: LocalStaging | None
) -> Written:
    if isinstance(folder, HdfsFolder):
        return HdfsWritten(folder, place)
    if folder.store is None:
        return MountedWritten(place)
    if staging is None:
        return StoreWritten(folder.store, {name: place})
    return LocalWritten(folder.store, held.enter_context(staging.folder()))
