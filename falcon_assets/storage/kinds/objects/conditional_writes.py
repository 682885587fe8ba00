"""Writes of an object on condition that it has not changed: of two writers one is refused, on any machine.

S3 and Azure's stores compare etags. Google's compares generations; that is not used, since there is no server to try it
with: there the database lets one run write.
"""

from __future__ import annotations

import errno
import threading
import uuid
from abc import ABC, abstractmethod
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from fsspec import AbstractFileSystem

from falcon_assets.storage.cluster_store import ClusterStore

_PROBE = ".probe-"
_OLD = timedelta(hours=1)


class ConditionalWrites(ABC):
    """Conditional writes to one kind of store; methods raise OSError, and exceptions of its driver."""

    def __init__(self, fs: AbstractFileSystem) -> None:
        self._fs = fs

    @abstractmethod
    def etag(self, path: str) -> str:
        """Returns the present etag of an object, fresh; raises FileNotFoundError if there is none."""

    @abstractmethod
    def write(self, path: str, content: bytes, before: str | None) -> str | None:
        """Writes an object if it still has the etag ``before`` (None: if there is none) and returns its new etag.

        Returns None if it was not written. A driver that got no answer asks again, and is then refused for its own
        write.
        """


class _OfS3(ConditionalWrites):
    def etag(self, path: str) -> str:
        return str(self._fs.info(path)["ETag"])

    def write(self, path: str, content: bytes, before: str | None) -> str | None:
        condition = {"IfNoneMatch": "*"} if before is None else {"IfMatch": before}
        try:
            return str(self._fs.pipe_file(path, content, **condition)["ETag"])
        except OSError as error:
            # What s3fs makes of a condition that is not met.
            if isinstance(error, FileExistsError | FileNotFoundError) or error.errno == errno.EINVAL:
                return None
            if _code(error) == "ConditionalRequestConflict":  # somebody else writes at the same moment
                return None
            raise


def _code(error: OSError) -> str:
    answer = getattr(error.__cause__, "response", None) or {}
    return str(answer.get("Error", {}).get("Code", ""))


class _OfAzure(ConditionalWrites):
    def etag(self, path: str) -> str:
        found = self._fs.info(path, refresh=True)
        if found["type"] != "file":
            raise FileNotFoundError(errno.ENOENT, "there is no such object", path)
        return str(found["etag"])

    def write(self, path: str, content: bytes, before: str | None) -> str | None:
        from azure.core import MatchConditions  # noqa: PLC0415 - who has no such store needs no driver of it
        from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError  # noqa: PLC0415

        condition: dict[str, Any] = {"mode": "create"}
        if before is not None:
            condition = {"etag": before, "match_condition": MatchConditions.IfNotModified}
        try:
            return str(self._fs.pipe_file(path, content, **condition)["etag"])
        except (FileExistsError, ResourceModifiedError, ResourceNotFoundError):
            return None


_KINDS: dict[str, type[ConditionalWrites]] = {"s3": _OfS3, "abfs": _OfAzure}
_lock = threading.Lock()
_found: dict[str, type[ConditionalWrites] | None] = {}


def conditional_writes(store: ClusterStore) -> ConditionalWrites | None:
    """Returns None if the store has no such writes; found out once per store, by trying."""
    key = f"{store.endpoint} {store.path('')}"
    with _lock:
        if key not in _found:
            protocols = [store.fs.protocol] if isinstance(store.fs.protocol, str) else store.fs.protocol
            kind = next((_KINDS[one] for one in protocols if one in _KINDS), None)
            _found[key] = kind if kind and _keeps_conditions(store, kind(store.fs)) else None
        found = _found[key]
    return found(store.fs) if found else None


def _keeps_conditions(store: ClusterStore, writes: ConditionalWrites) -> bool:
    path = f"{store.staging}/{_PROBE}{uuid.uuid4().hex}"
    try:
        first = writes.write(path, b"1", None)
        if first is None or writes.write(path, b"2", None) is not None:
            return False
        second = writes.write(path, b"2", first)
        return second is not None and writes.write(path, b"3", first) is None
    except OSError as error:
        if error.errno == errno.ENOSYS:  # stores that only speak S3's protocol say so
            return False
        raise
    finally:
        with suppress(FileNotFoundError):
            store.fs.rm_file(path)
        remove_old_probes(store, datetime.now(UTC))


def remove_old_probes(store: ClusterStore, now: datetime) -> None:
    with suppress(OSError):
        for one in store.fs.ls(store.staging, detail=True):
            written = one.get("LastModified") or one.get("last_modified")  # S3's name, and Azure's
            is_probe = one["name"].rpartition("/")[2].startswith(_PROBE)
            if is_probe and written is not None and now - written > _OLD:
                store.fs.rm_file(one["name"])
