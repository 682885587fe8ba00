"""Records of a copy on a mounted file system: appended, so that each one outlives the process at once."""

from __future__ import annotations

import os
import uuid

from fsspec import AbstractFileSystem

from falcon_assets.storage.copying.copy_plan import CopyRecord
from falcon_assets.storage.copying.copy_records import RecordLog, to_lines


class AppendedLog(RecordLog):
    def __init__(self, fs: AbstractFileSystem, folder: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(f"{folder}/{uuid.uuid4().hex}.jsonl", flags, 0o666)

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)

    def add(self, record: CopyRecord) -> None:
        os.write(self._descriptor, to_lines([record]))
