"""The folders of one source's part of one target instance, in the target's staging location.

They are::

    STAGING/copies/KEY/SOURCE/published.jsonl         records of the published instance
    STAGING/copies/KEY/SOURCE/ATTEMPT/plan/N.json     what task N is to do
    STAGING/copies/KEY/SOURCE/ATTEMPT/records/*       what tasks verified
    STAGING/copies/KEY/SOURCE/ATTEMPT/data            the files, on stores that can rename
    STAGING/copies/KEY/SOURCE/ATTEMPT/finished.json   the part is complete; which files came, which are to go
    STAGING/copies/unfinished/KEY.SOURCE              there may be an attempt: see unfinished_copies

The next attempt takes the folder of a crashed one over by giving it another name, so that tasks which are still
running find their paths gone instead of writing among files that were verified meanwhile. Object stores have no names
to change: there the folder is always the same one, and what a late task wrote shows in the etags before anything is
published.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from falcon_assets.planning.replication.copy_plan import CopyRecord, FileStep, ListedFile
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_records import from_lines, read_records, to_lines
from falcon_assets.storage.copying.file_marks import list_files
from falcon_assets.storage.files.files_on import files_on
from falcon_assets.storage.staging import copies_folder, unfinished_mark


class CopyFolders:
    """Raises OSError as the store says.

    Args:
        store: The target's.
        path: The target's instance, below the root.
        source: Name of the source cluster.
    """

    def __init__(self, store: ClusterStore, path: str, source: str) -> None:
        self._store, self._fs, self._local = store, store.fs, store.is_local
        self.folder = f"{copies_folder(store, path)}/{source}"
        self._path, self._mark = path, unfinished_mark(store, path, source)
        self.attempt = self._last_attempt()

    @property
    def has_data(self) -> bool:
        """Whether files are staged here: on stores that can rename."""
        return self._local

    @property
    def data(self) -> str:
        """Where the files are staged, on stores that can rename."""
        return f"{self.attempt}/data"

    def begin(self) -> None:
        """Makes the folder of a new attempt, with what an earlier one left in it."""
        self._begin_mark()
        if self._local:
            new = f"{self.folder}/attempt-{uuid.uuid4().hex}"
            if Path(self.attempt).exists():
                Path(self.attempt).rename(new)
            self.attempt = new
            for left in Path(self.folder).glob("attempt-*"):
                if str(left) != new:
                    shutil.rmtree(left, ignore_errors=True)  # what the tasks of a killed run still made
            for name in ("plan", "records"):
                Path(new, name).mkdir(parents=True, exist_ok=True)
        if self._fs.exists(self._finished):
            self._fs.rm_file(self._finished)

    def staged_records(self) -> list[CopyRecord]:
        """What attempts verified since the last publication."""
        return read_records(self._fs, f"{self.attempt}/records")

    def keep_records(self, records: Iterable[CopyRecord]) -> None:
        """Makes one log of the records that are still true, so that many attempts leave no more than one."""
        folder = f"{self.attempt}/records"
        try:
            logs = [str(log) for log in self._fs.ls(folder, detail=False)]
        except FileNotFoundError:
            logs = []
        if len(logs) > 1:
            self._fs.pipe_file(f"{folder}/{uuid.uuid4().hex}.jsonl", to_lines(records))
            files_on(self._fs).remove(logs)

    def staged_files(self) -> dict[str, ListedFile]:
        """The files in staging, on stores that can rename."""
        return list_files(self._store, self.data[len(self._store.path("")) :], None)

    def published_records(self) -> list[CopyRecord]:
        """What was verified of the published instance."""
        try:
            return from_lines(self._fs.cat_file(self._published))
        except FileNotFoundError:
            return []

    @property
    def is_published(self) -> bool:
        """Whether the part was published, and nobody has begun to copy it again since."""
        return bool(self._fs.exists(self._published)) and not self._fs.exists(self.attempt)

    def write_plan(self, number: int, steps: Iterable[FileStep]) -> None:
        """Writes what a task is to do."""
        text = json.dumps([(step.step.value, *step[1:]) for step in steps])
        self._fs.pipe_file(f"{self.attempt}/plan/{number}.json", text.encode())

    def finish(self, copied: Sequence[str], delete: Sequence[str]) -> None:
        """Says that the part is complete: which files were copied, and which files of the target are to go."""
        self._fs.pipe_file(self._finished, json.dumps([list(copied), list(delete)]).encode())

    def finished(self) -> tuple[list[str], list[str]] | None:
        """The files that were copied and those that are to go; None where the part is not complete."""
        try:
            copied, delete = json.loads(self._fs.cat_file(self._finished))
        except FileNotFoundError:
            return None
        return copied, delete

    def end(self, records: Iterable[CopyRecord]) -> None:
        """Keeps the records of what is published now, and nothing else."""
        if self._local:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
        self._fs.pipe_file(self._published, to_lines(records))
        if self._fs.exists(self.attempt):
            files_on(self._fs).remove_tree(self.attempt)
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._mark)

    def _begin_mark(self) -> None:
        """A mark that is whole is not written again: a crash could cut it off while there is something staged."""
        if self._local:
            Path(self._mark).parent.mkdir(parents=True, exist_ok=True)
        said = os.fsencode(self._path)
        if not self._fs.exists(self._mark) or self._fs.cat_file(self._mark) != said:
            self._fs.pipe_file(self._mark, said)

    @property
    def _published(self) -> str:
        return f"{self.folder}/published.jsonl"

    @property
    def _finished(self) -> str:
        return f"{self.attempt}/finished.json"

    def _last_attempt(self) -> str:
        if self._local:
            # Tasks of a killed run may have made a folder again that the next one had taken over: it has no records.
            left = sorted(Path(self.folder).glob("attempt-*"), key=lambda folder: Path(folder, "records").exists())
            if left:
                return str(left[-1])
        return f"{self.folder}/attempt"
