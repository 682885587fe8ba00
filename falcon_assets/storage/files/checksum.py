"""The checksum of a content."""

from __future__ import annotations

from typing import Protocol

from xxhash import xxh3_128, xxh3_128_hexdigest


class Checksum(Protocol):
    def update(self, block: bytes | bytearray | memoryview, /) -> None: ...

    def digest(self) -> bytes: ...

    def hexdigest(self) -> str: ...


def checksum() -> Checksum:
    """Starts XXH3 of 128 bits, as fast as memory; it is no protection against contents made to have the same one."""
    return xxh3_128()


def checksum_of(content: bytes) -> str:
    return xxh3_128_hexdigest(content)
