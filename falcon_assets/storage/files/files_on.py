"""Chooses the access to the files of a file system: the one place where that is decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

from falcon_assets.planning.eviction import Space
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.files.file_access import FileAccess
from falcon_assets.storage.files.local_files import LocalFiles
from falcon_assets.storage.files.object_files import ObjectFiles, holds_objects
from falcon_assets.storage.files.remote_files import RemoteFiles
from falcon_assets.storage.files.s3_files import S3Files

_DENIED = (401, 403)


class AzureFiles(ObjectFiles):
    def is_mounted(self, root: str) -> bool:
        """True also if these credentials may not ask."""
        try:
            self.fs.info(self.fs.split_path(root)[0], refresh=True)
        except FileNotFoundError:
            return False
        except Exception as error:
            if getattr(error, "status_code", None) in _DENIED:
                return True
            raise
        return True


class GoogleFiles(ObjectFiles):
    def is_mounted(self, root: str) -> bool:
        """Lists the bucket, which readers may; true also if these credentials may not."""
        try:
            self.fs.call("GET", "b/{}/o", self.fs.split_path(root)[0], maxResults=1, json_out=True)
        except FileNotFoundError:
            return False
        except Exception as error:
            if getattr(error, "code", None) in _DENIED or str(error).startswith("Forbidden"):
                return True
            raise
        return True


class HdfsFiles(RemoteFiles):
    cannot = frozenset({Ability.LOCK})
    marks_at_sight = True
    tells_changes = True

    def is_mounted(self, root: str) -> bool:
        """Whether the folder is there: users may have moved or removed it, and another namenode has none."""
        return bool(self.fs.isdir(root))

    def is_empty(self, root: str) -> bool:
        return not self.fs.ls(root)

    def space(self, root: str) -> Space | None:
        """Measures, in bytes of all copies, what quotas leave of it."""
        room = self.fs.room(root)
        return Space(*room) if room else None

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


def files_on(fs: AbstractFileSystem) -> FileAccess:
    if isinstance(fs, LocalFileSystem):
        return LocalFiles(fs)
    if "webhdfs" in fs.protocol:
        return HdfsFiles(fs)
    if not holds_objects(fs.protocol):
        return RemoteFiles(fs)
    kinds = ((S3Files, "s3"), (AzureFiles, "abfs"), (GoogleFiles, "gs"))
    return next((kind for kind, scheme in kinds if scheme in fs.protocol), ObjectFiles)(fs)
