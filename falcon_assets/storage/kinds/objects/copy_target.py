"""Copies to object stores, which have no names to change: files are written in their place, and the flag comes last.

What a late task of a killed run wrote shows in the etags before anything is published.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from falcon_assets.planning.replication.copy_plan import ListedFile
from falcon_assets.storage.copying.copy_target import CopiedPart, CopyTarget
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.objects.file_copy import ObjectFileCopy
from falcon_assets.storage.kinds.objects.record_log import BatchedLog


class ObjectCopyTarget(CopyTarget):
    """See :class:`CopyTarget`."""

    file_copy = ObjectFileCopy
    record_log = BatchedLog

    @property
    def written(self) -> str:
        return self.place

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

    def staged_files(self) -> dict[str, ListedFile]:
        return {}

    def hide(self) -> None:
        if self.output.flag and self.fs.exists(f"{self.place}/{self.output.flag}"):
            self.fs.rm_file(f"{self.place}/{self.output.flag}")

    def problem(self) -> str | None:
        if self.rules.replaces and self.output.flag is None:
            return "an object store publishes by setting the flag: declare availability_flag"
        return None

    def is_whole(self) -> bool:
        return self.output.flag is not None and self.is_published

    def made(self) -> frozenset[str]:
        if self.rules.replaces:
            return frozenset()
        self.fs.invalidate_cache()
        try:
            made = frozenset[str](json.loads(self.fs.cat_file(self.note)))
        except (FileNotFoundError, ValueError):
            return frozenset()  # where a crash cut the note off, nothing was copied yet
        has_ended = self.output.flag in made and self.is_published
        return frozenset() if has_ended else made

    def note_made(self, names: Collection[str]) -> None:
        if names:
            flag = [self.output.flag] if self.output.flag else []
            self.write(self.note, json.dumps(sorted({*names, *flag})).encode())

    def has_come(self) -> bool:
        # Another source takes the flag away while it changes its own part: this one may lie in its place already.
        return self.finished() is not None or self.is_part_published

    def publish(
        self, key: str, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile], flag: bytes
    ) -> DataVersion | None:
        """Removes what is to go, and sets the flag: the files are in their place."""
        self.store.files.remove(sorted({f"{self.place}/{name}" for part in parts for name in part.delete}))
        if self.output.flag:
            self.fs.pipe_file(f"{self.place}/{self.output.flag}", flag)
        self.fs.invalidate_cache()
        return None

    def discard(self, take_away: Callable[[str], None] | None = None) -> None:
        if made := self.made():
            for name in made:
                self.drop(f"{self.place}/{name}" if name else self.place)
            self.fs.invalidate_cache()
            if not self.fs.find(self.place):
                self.drop(self.place)  # the folders, where the store has such
        super().discard(take_away)
