"""The files of an HDFS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.files.remote_files import RemoteFiles


class HdfsFiles(RemoteFiles):
    """See :class:`FileAccess`."""

    cannot = frozenset({Ability.LOCK, Ability.MODES, Ability.TIMES})
    tells_changes = True

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
