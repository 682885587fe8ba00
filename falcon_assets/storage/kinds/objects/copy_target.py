"""Copies to object stores, which cannot rename: files are written in their place, and the flag last.

Files that a late task of a killed run wrote show in the etags before anything is published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from falcon_assets.storage.copying.copy_plan import ListedFile
from falcon_assets.storage.copying.copy_records import BatchedLog
from falcon_assets.storage.copying.copy_target import CopiedPart, CopyTarget
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.objects.file_copy import ObjectFileCopy


class ObjectCopyTarget(CopyTarget):
    in_place = True
    file_copy = ObjectFileCopy
    record_log = BatchedLog

    def last_attempt(self) -> str:
        return f"{self.folder}/attempt"

    @contextmanager
    def held(self, where: str, seconds: float) -> Iterator[bool]:
        yield True  # there are no locks that end with their holder

    def recover(self, where: str) -> None:
        pass  # the flag is gone until the next publication

    def take_over(self) -> None:
        pass

    def write(self, path: str, content: bytes) -> None:
        self.fs.pipe_file(path, content)

    def publish(
        self, key: str, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile], flag: bytes
    ) -> DataVersion | None:
        self.store.files.remove(sorted({f"{self.place}/{name}" for part in parts for name in part.delete}))
        if self.output.flag:
            self.fs.pipe_file(f"{self.place}/{self.output.flag}", flag)
        self.fs.invalidate_cache()
        return None
