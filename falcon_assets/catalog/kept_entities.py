"""Cache of the entities of a folder, parsed and checked, in a file: parsing thousands takes seconds.

Its key covers the content of all definition files, the version of this package and everything else that the result
depends on. A file that another user could have written, or that is damaged, is ignored and replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pydantic

from falcon_assets.base.file_locks import PRIVATE_FOLDER
from falcon_assets.catalog.checked_entities import CheckedEntities, ReadWhenAsked, Relations
from falcon_assets.catalog.workflow_files import WorkflowPaths
from falcon_assets.catalog.yaml_files.definition_files import shown_path
from falcon_assets.errors import Position, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.entity import KINDS
from falcon_assets.model.feed import Feed
from falcon_assets.model.flow import Flow
from falcon_assets.model.process import Process
from falcon_assets.planning.dependencies import Node

FOLDER = "entities"
_CODE = ("catalog", "model", "planning")
"""Folders of the package that determine the meaning of definitions."""


def key_of(root: Path, contents: Mapping[Path, bytes]) -> str:
    """The key depends on these files and contents, and on all code that reads them."""
    digest = hashlib.blake2b(repr((_code(), shown_path(root))).encode(), digest_size=32)
    for path, raw in contents.items():
        digest.update(f"{len(raw)} {path.relative_to(root)}\0".encode("utf-8", "surrogateescape"))
        digest.update(raw)
    return digest.hexdigest()


def kept(home: Path, root: Path, key: str) -> CheckedEntities | None:
    """Returns the entities kept under that key; None: there are none that can be trusted."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError, MemoryError):
        head, _, body = _trusted(_file(home, root)).partition(b"\n")
        if head.decode() != f"{key} {_digest(body)}":
            return None
        said = json.loads(body)
        texts = {kind: {name: text for name, text, *_ in said["entities"][kind]} for kind in KINDS}
        return CheckedEntities(
            ReadWhenAsked(Cluster, texts["cluster"]),
            ReadWhenAsked(Feed, texts["feed"]),
            ReadWhenAsked(Process, texts["process"]),
            ReadWhenAsked(Datasource, texts["datasource"]),
            ReadWhenAsked(Flow, texts["flow"]),
            {(kind, name): Position(*at) for kind in KINDS for name, _, *at in said["entities"][kind]},
            tuple(
                Problem(Position(*at), key_path, message, snippet, is_warning=True)
                for at, key_path, message, snippet in said["warnings"]
            ),
            frozenset(said["critical"]),
            frozenset(said["secrets"]),
            WorkflowPaths(tuple(said["files"]), tuple(said["libs"])),
            Relations(
                said["writers"],
                frozenset(said["replicated"]),
                frozenset(said["compacted"]),
                frozenset(said["imported"]),
                frozenset(said["exported"]),
                frozenset(said["rollups"]),
                frozenset(said["checked"]),
                frozenset(said["counted"]),
                frozenset(said["late"]),
                frozenset((_node(before), _node(after)) for before, after in said["left_out"]),
            ),
        )
    return None


def keep(home: Path, root: Path, key: str, found: CheckedEntities, documents: Iterable[Any]) -> None:
    """Keeps entities without problems, and the documents they were made of; replaces others. Errors are ignored."""
    entities: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    said = {
        "entities": entities,
        "warnings": [[_place(one.position), one.key_path, one.message, one.snippet] for one in found.warnings],
        "left_out": sorted(found.relations.left_out),
        "critical": sorted(found.critical),
        "secrets": sorted(found.secrets),
        "files": found.programs.files,
        "libs": found.programs.libs,
        "writers": found.relations.writers,
        "replicated": sorted(found.relations.replicated),
        "compacted": sorted(found.relations.compacted),
        "imported": sorted(found.relations.imported),
        "exported": sorted(found.relations.exported),
        "rollups": sorted(found.relations.rollups),
        "checked": sorted(found.relations.checked),
        "counted": sorted(found.relations.counted),
        "late": sorted(found.relations.late),
    }
    with suppress(OSError, ValueError, TypeError, RecursionError):
        for data in documents:
            text = json.dumps(data)
            if json.loads(text) != data:  # where a key is no text, say
                return
            kind, name = data["kind"], data["name"]
            entities[kind].append([name, text, *_place(found.positions[kind, name])])
        raw = json.dumps(said).encode()
        _write(_file(home, root), f"{key} {_digest(raw)}\n".encode() + raw)


def _place(position: Position) -> list[Any]:
    return [position.file, position.line, position.column]


def _node(said: Sequence[str]) -> Node:
    kind, name, cluster = said
    return kind, name, cluster


def _file(home: Path, root: Path) -> Path:
    return home / FOLDER / hashlib.blake2b(os.fsencode(root.absolute()), digest_size=16).hexdigest()


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=32).hexdigest()


def _trusted(file: Path) -> bytes:
    """Returns the content of a file that only this user can have written.

    Raises:
        OSError: it cannot be read.
        ValueError: other users could have written it.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ValueError(file)
        return opened.read()


def _write(file: Path, raw: bytes) -> None:
    """Replaces the file atomically."""
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
    """Identifies the code that reads and checks definitions: versions, and the package's files while in development."""
    package = Path(__file__).parent.parent
    sources = (file for folder in _CODE for file in sorted((package / folder).rglob("*.py")))
    stats = ((str(file.relative_to(package)), file.stat()) for file in sources)
    files = tuple((name, found.st_size, found.st_mtime_ns) for name, found in stats)
    return version("falcon-assets"), pydantic.VERSION, sys.version_info[:3], files
