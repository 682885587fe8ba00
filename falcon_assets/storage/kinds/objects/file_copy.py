"""Copying one file to an object store, which says itself what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.file_copy import COPY_DIFFERS, CopiedFile, FileCopy, Proof
from falcon_assets.storage.files.remote_files import entry_version
from falcon_assets.storage.kinds.objects.s3_etag import Etag, part_size


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
