"""Records of a copy on an object store, which cannot append: those of some seconds become one object."""

from __future__ import annotations

import threading
import time
import uuid

from fsspec import AbstractFileSystem

from falcon_assets.storage.copying.copy_plan import CopyRecord
from falcon_assets.storage.copying.copy_records import RecordLog, to_lines

_FLUSH_SECONDS = 2.0


class BatchedLog(RecordLog):
    def __init__(self, fs: AbstractFileSystem, folder: str) -> None:
        self._fs, self._folder = fs, folder
        self._lock, self._waiting, self._flushed = threading.Lock(), list[CopyRecord](), time.monotonic()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._flush()

    def add(self, record: CopyRecord) -> None:
        with self._lock:
            self._waiting.append(record)
            if time.monotonic() - self._flushed > _FLUSH_SECONDS:
                self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._fs.pipe_file(f"{self._folder}/{uuid.uuid4().hex}.jsonl", to_lines(self._waiting))
        self._waiting, self._flushed = [], time.monotonic()
