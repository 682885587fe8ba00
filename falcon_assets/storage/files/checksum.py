"""The checksum of a content."""

from __future__ import annotations

from typing import Protocol

from xxhash import xxh3_128, xxh3_128_hexdigest


class Checksum(Protocol):
    """A checksum that is being computed."""

    def update(self, block: bytes | bytearray | memoryview, /) -> None:
        """Adds a block."""

    def digest(self) -> bytes:
        """128 bits of all blocks so far."""

    def hexdigest(self) -> str:
        """The same, hexadecimal."""


def checksum() -> Checksum:
    """A new one: XXH3 of 128 bits, which is as fast as memory; no two files of a lake share one by chance.

    It is no protection against somebody who makes two contents with the same checksum on purpose.
    """
    return xxh3_128()


def checksum_of(content: bytes) -> str:
    """The checksum of a whole content, hexadecimal."""
    return xxh3_128_hexdigest(content)
