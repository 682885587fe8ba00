"""The files of an HDFS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.files.remote_files import RemoteFiles


class HdfsFiles(RemoteFiles):
    cannot = frozenset({Ability.LOCK})
    marks_at_sight = True
    tells_changes = True

    def is_mounted(self, root: str) -> bool:
        """Whether the folder is there: users may have moved or removed it, and another namenode has none."""
        return bool(self.fs.isdir(root))

    def is_empty(self, root: str) -> bool:
        return not self.fs.ls(root)

    def put_new(self, path: str, content: bytes) -> bytes:
        with suppress(FileExistsError):
            self.fs.pipe_file(path, content, mode="create")
        found: bytes = self.fs.cat_file(path)
        return found

    def told_checksum(self, entry: Mapping[str, Any]) -> bytes | None:
        return str(self.fs.ukey(entry["name"])).encode()

    def remove(self, paths: Iterable[str]) -> None:
        found, gone = list(paths), 0
        for path in found:
            try:
                self.fs.rm(path)
            except FileNotFoundError:
                gone += 1
                if gone == len(found):
                    raise

    def remove_tree(self, path: str) -> None:
        self.fs.rm(path, recursive=True)
