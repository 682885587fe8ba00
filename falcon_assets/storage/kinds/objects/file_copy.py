"""Copying one file to an object store, which says itself what it holds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.file_copy import COPY_DIFFERS, CopiedFile, FileCopy, Proof
from falcon_assets.storage.files.remote_files import entry_version

PART = 16 << 20
_MOST_PARTS = 10_000


def part_size(size: int) -> int | None:
    """Returns the size of the parts that an object is sent in; None: in one piece."""
    return None if size <= 2 * PART else max(PART, -(-size // _MOST_PARTS))


class Etag:
    """Computes the MD5 of the content, or of the MD5s of parts of ``part`` bytes, with their number.

    A store that encrypts with customers' keys gives another one: then the object has to be read back.
    """

    def __init__(self, part: int | None) -> None:
        self._part, self._left = part, part or 0
        self._current, self._parts = hashlib.md5(usedforsecurity=False), list[bytes]()

    def update(self, block: bytes | memoryview) -> None:
        rest = memoryview(block)
        while self._part and len(rest) >= self._left:
            self._current.update(rest[: self._left])
            rest = rest[self._left :]
            self._parts.append(self._current.digest())
            self._current, self._left = hashlib.md5(usedforsecurity=False), self._part
        self._current.update(rest)
        self._left -= len(rest)

    def hexdigest(self) -> str:
        """Returns the etag, without quotes; ends the computation."""
        if not self._part:
            return self._current.hexdigest()
        if self._left < self._part:
            self._parts.append(self._current.digest())
        return f"{hashlib.md5(b''.join(self._parts), usedforsecurity=False).hexdigest()}-{len(self._parts)}"


class ObjectFileCopy(FileCopy):
    """Writes each object at once, a large one in parts: no reader sees one that is not whole."""

    def copy(self, source: str, target: str, size: int) -> CopiedFile:
        proof, part, fs = self.proof(size), part_size(size), self.target.fs
        if part is None:
            data = b"".join(self.read(source, size))
            proof.update(data)
            fs.pipe_file(target, data)
        else:
            self._send_parts(proof, source, target, size, part)
        copied = self.verified(proof, target, size)
        if copied is None:
            raise StorageError(COPY_DIFFERS)
        return copied

    def proof(self, size: int) -> Proof:
        return _EtagProof(size)

    def verified(self, proof: Proof, target: str, size: int) -> CopiedFile | None:
        info = self.target.fs.info(target)
        if self.by_size or not isinstance(proof, _EtagProof) or not proof.is_of(info, size):
            return super().verified(proof, target, size)
        return CopiedFile(proof.checksum, "etag", entry_version(info))

    def _send_parts(self, proof: Proof, source: str, target: str, size: int, part: int) -> None:
        file = self.target.fs.open(target, "wb", block_size=part)
        try:
            waiting = bytearray()
            for block in self.read(source, size):
                proof.update(block)
                waiting += block
                while len(waiting) >= part:
                    file.write(bytes(waiting[:part]))
                    del waiting[:part]
            file.write(bytes(waiting))
        except BaseException:
            file.discard()  # nobody ever sees an object that was not closed
            file.closed = True
            raise
        file.close()


class _EtagProof(Proof):
    def __init__(self, size: int) -> None:
        super().__init__()
        self._etag = Etag(part_size(size))

    def update(self, block: bytes | memoryview) -> None:
        super().update(block)
        self._etag.update(block)

    def is_of(self, info: Mapping[str, Any], size: int) -> bool:
        return bool(info["size"] == size and str(info.get("ETag", "")).strip('"') == self._etag.hexdigest())
