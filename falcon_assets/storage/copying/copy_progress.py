"""The progress of a copy, read from the records of its tasks while they run."""

from __future__ import annotations

import time
from dataclasses import dataclass

from falcon_assets.storage.copying.copy_records import from_lines
from falcon_assets.storage.copying.copy_task import CopyJob


@dataclass(frozen=True)
class CopyProgress:
    files: int
    of_files: int
    """Files that the tasks look at."""
    bytes: int
    of_bytes: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.bytes / self.seconds if self.seconds else 0.0


class ProgressReader:
    """Reads the records since the last call, each once; ``sizes`` are those of the tasks' files."""

    def __init__(self, job: CopyJob, sizes: dict[str, int]) -> None:
        self._fs, self._folder, self._sizes = job.target, f"{job.folder}/records", sizes
        self._started, self._read = time.monotonic(), dict[str, int]()
        self._done: set[str] = set()
        self._old = self._new_names()  # of earlier attempts

    def __call__(self) -> CopyProgress:
        self._done |= self._new_names() & self._sizes.keys() - self._old
        return CopyProgress(
            files=len(self._done),
            of_files=len(self._sizes),
            bytes=sum(map(self._sizes.__getitem__, self._done)),
            of_bytes=sum(self._sizes.values()),
            seconds=time.monotonic() - self._started,
        )

    def _new_names(self) -> set[str]:
        names: set[str] = set()
        try:
            logs = self._fs.ls(self._folder, detail=True)
        except FileNotFoundError:
            return names
        for entry in logs:
            log, size = str(entry["name"]), int(entry["size"])
            start = self._read.get(log, 0)
            if size > start:
                text: bytes = self._fs.cat_file(log, start=start, end=size)
                whole = text[: text.rfind(b"\n") + 1]  # the rest of a line is still being written
                self._read[log] = start + len(whole)
                names.update(record.name for record in from_lines(whole))
        return names
