"""Files of a tree of definitions with another content than they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

Parts: TypeAlias = Callable[[], Iterator[bytes]]
"""Gives a content part by part."""
_SHOWN_BYTES = 1 << 20


@dataclass(frozen=True)
class FileChange:
    """A file with another content.

    Attributes:
        path: Which file.
        before: What is in it; None: it is not there.
        after: What will be in it; None: it goes.
    """

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def before_hash(self) -> str | None:
        """SHA-256 of what is in it."""
        return None if self.before is None else sha256(self.before).hexdigest()

    @property
    def after_hash(self) -> str | None:
        """SHA-256 of what will be in it."""
        return None if self.after is None else sha256(self.after).hexdigest()

    def parts(self) -> Iterable[bytes]:
        """What will be in it."""
        return () if self.after is None else (self.after,)


@dataclass(frozen=True)
class WorkflowChange:
    """A file with a content that need not fit into memory.

    Attributes:
        path: Which file.
        before_hash: SHA-256 of what is in it; None: it is not there.
        after_hash: SHA-256 of what will be in it.
        before: What is in it, part by part.
        parts: What will be in it, part by part.
    """

    path: Path
    before_hash: str | None
    after_hash: str
    before: Parts | None
    parts: Parts

    def diff(self, name: str) -> str:
        """The change as a unified diff."""
        return content_diff(self.before, self.parts, ("/dev/null" if self.before is None else name, name))


AnyChange: TypeAlias = FileChange | WorkflowChange


def content_diff(before: Parts | None, after: Parts | None, sides: tuple[str, str]) -> str:
    """How two contents differ, as a unified diff; of what is no text, or a long one, only that they do.

    Args:
        before: One of them, part by part; None: there is none.
        after: The other.
        sides: What they are called.
    """
    old, new = (_text(parts) if parts else "" for parts in (before, after))
    if old is None or new is None:
        return f"--- {sides[0]}\n+++ {sides[1]}\n(the content, which is not shown, is another one)\n"
    lines = unified_diff(old.splitlines(), new.splitlines(), *sides, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _text(parts: Parts) -> str | None:
    """The text; None: it is none, or too long to be shown."""
    read = b""
    for part in parts():
        read += part
        if len(read) > _SHOWN_BYTES:
            return None
    try:
        return None if b"\0" in read else read.decode()
    except UnicodeDecodeError:
        return None
