"""The etag that S3 gives to an object: it proves, without reading back, that the store holds what was sent."""

from __future__ import annotations

import hashlib

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
