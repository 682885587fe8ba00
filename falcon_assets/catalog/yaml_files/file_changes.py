"""Changes of files in a tree of definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

Parts: TypeAlias = Callable[[], Iterator[bytes]]
_SHOWN_BYTES = 1 << 20


@dataclass(frozen=True)
class FileChange:
    """A change of a file; ``before`` None: it does not exist; ``after`` None: it is deleted."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def before_hash(self) -> str | None:
        return None if self.before is None else sha256(self.before).hexdigest()

    @property
    def after_hash(self) -> str | None:
        return None if self.after is None else sha256(self.after).hexdigest()

    def parts(self) -> Iterable[bytes]:
        return () if self.after is None else (self.after,)


@dataclass(frozen=True)
class WorkflowChange:
    """A change of a file whose content may not fit into memory; hashes are SHA-256, None: it does not exist."""

    path: Path
    before_hash: str | None
    after_hash: str
    before: Parts | None
    parts: Parts

    def diff(self, name: str) -> str:
        return content_diff(self.before, self.parts, ("/dev/null" if self.before is None else name, name))


AnyChange: TypeAlias = FileChange | WorkflowChange


def content_diff(before: Parts | None, after: Parts | None, sides: tuple[str, str]) -> str:
    """Returns a unified diff of two contents; of binary or long ones only that they differ. None: there is none."""
    old, new = (_text(parts) if parts else "" for parts in (before, after))
    if old is None or new is None:
        return f"--- {sides[0]}\n+++ {sides[1]}\n(the content, which is not shown, is another one)\n"
    lines = unified_diff(old.splitlines(), new.splitlines(), *sides, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _text(parts: Parts) -> str | None:
    read = b""
    for part in parts():
        read += part
        if len(read) > _SHOWN_BYTES:
            return None
    try:
        return None if b"\0" in read else read.decode()
    except UnicodeDecodeError:
        return None
