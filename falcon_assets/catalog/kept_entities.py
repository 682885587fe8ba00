"""The entities of a folder as they were read and checked last, in a file: of thousands the reading takes seconds.

What is kept is found by the content of all files of definitions, the version of this package and everything else that
what is said of them depends on. It is for who wrote it alone: a file that somebody else could have written, or that is
damaged, is as good as none, and is replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import pydantic

from falcon_assets.base.file_locks import PRIVATE_FOLDER
from falcon_assets.catalog.declared import KINDS, Declared
from falcon_assets.catalog.yaml_files.documents import shown_path
from falcon_assets.errors import Position, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process

Entity: TypeAlias = Cluster | Feed | Process
FOLDER = "entities"
"""In FALCON_HOME."""
WORTH_BYTES = 50_000
"""Less is read as fast as it is looked up."""
_CODE = ("catalog", "model", "planning")
"""The folders of the package that say what definitions mean."""


@dataclass(frozen=True)
class KeptEntities:
    """Entities without problems.

    Attributes:
        entities: Each with where it is declared, in the order of the files.
        warnings: What works and surprises.
    """

    entities: tuple[tuple[Entity, Position], ...]
    warnings: tuple[Problem, ...]


def key_of(root: Path, contents: Mapping[Path, bytes]) -> str:
    """By what the entities of a folder are found again.

    Args:
        root: The folder.
        contents: Its files of definitions, and what is in them.
    """
    digest = hashlib.blake2b(repr((_code(), shown_path(root))).encode(), digest_size=32)
    for path, raw in contents.items():
        digest.update(f"{len(raw)} {path.relative_to(root)}\0".encode("utf-8", "surrogateescape"))
        digest.update(raw)
    return digest.hexdigest()


def kept(home: Path, root: Path, key: str) -> KeptEntities | None:
    """What was kept under that key; None: nothing that can be trusted."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError, MemoryError):
        head, _, body = _trusted(_file(home, root)).partition(b"\n")
        if head.decode() != f"{key} {_digest(body)}":
            return None
        said = json.loads(body)
        entities = tuple((KINDS[data["kind"]].model_validate(data), Position(*at)) for data, at in said["entities"])
        warnings = (
            Problem(Position(*at), key_path, message, snippet, is_warning=True)
            for at, key_path, message, snippet in said["warnings"]
        )
        return KeptEntities(entities, tuple(warnings))
    return None


def keep(home: Path, root: Path, key: str, declared: Iterable[Declared[Any]], warnings: Iterable[Problem]) -> None:
    """Keeps entities without problems under that key, in place of others; where that is not possible, nothing happens.

    Args:
        home: FALCON_HOME, on this machine.
        root: The folder of the definitions.
        key: As :func:`key_of`.
        declared: All entities.
        warnings: What else is said of them.
    """
    said = {
        "entities": [[one.document.data, _place(one.document.position())] for one in declared],
        "warnings": [[_place(one.position), one.key_path, one.message, one.snippet] for one in warnings],
    }
    with suppress(OSError, ValueError, TypeError, RecursionError):
        body = json.dumps(said)
        if json.loads(body) == said:  # not where a key is no text, say
            raw = body.encode()
            _write(_file(home, root), f"{key} {_digest(raw)}\n".encode() + raw)


def _place(position: Position) -> list[Any]:
    return [position.file, position.line, position.column]


def _file(home: Path, root: Path) -> Path:
    return home / FOLDER / hashlib.blake2b(os.fsencode(root.absolute()), digest_size=16).hexdigest()


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=32).hexdigest()


def _trusted(file: Path) -> bytes:
    """What is in a file that this user alone could have written.

    Raises:
        OSError: there is none.
        ValueError: others could have.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ValueError(file)
        return opened.read()


def _write(file: Path, raw: bytes) -> None:
    """Replaces the file: whoever reads sees all of the old one, or of the new one."""
    file.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    handle, new = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as written:
            written.write(raw)
        Path(new).replace(file)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise


@lru_cache(maxsize=1)
def _code() -> tuple[Any, ...]:
    """What reads and checks definitions: versions, and the files of the package, which developers change."""
    package = Path(__file__).parent.parent
    sources = (file for folder in _CODE for file in sorted((package / folder).rglob("*.py")))
    stats = ((str(file.relative_to(package)), file.stat()) for file in sources)
    files = tuple((name, found.st_size, found.st_mtime_ns) for name, found in stats)
    return version("falcon-assets"), pydantic.VERSION, sys.version_info[:3], files
