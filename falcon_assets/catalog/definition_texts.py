"""The definitions of a tree as they are compared with earlier ones: texts without secrets, and hashes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from falcon_assets.catalog.checks import check_all
from falcon_assets.catalog.declared import parse_documents
from falcon_assets.catalog.stored_tree import Key, masked, read_tree, text_of
from falcon_assets.catalog.yaml_files.definition_files import definition_files
from falcon_assets.catalog.yaml_files.secrets import may_hold_secrets
from falcon_assets.errors import InvalidDefinitionsError
from falcon_assets.model.process import Process

_BLOCK = 1 << 20


@dataclass(frozen=True)
class DefinitionText:
    """The definition of an entity.

    Attributes:
        text: As it is stored; values of storage options are stars.
        text_hash: SHA-256 of that text.
        workflow_hash: SHA-256 of the files of its workflows; None: it has none.
    """

    text: str
    text_hash: str
    workflow_hash: str | None


@dataclass(frozen=True)
class DefinitionTexts:
    """All definitions of a tree.

    Attributes:
        by_key: The definition of each entity.
        workflows: The files of their workflows, relative to the root of the tree.
        fingerprint: Another one where any of them has changed.
    """

    by_key: Mapping[Key, DefinitionText]
    workflows: tuple[str, ...]
    fingerprint: str


def read_definition_texts(root: Path) -> DefinitionTexts:
    """The definitions as they are now.

    Raises:
        InvalidDefinitionsError: they have problems.
        DefinitionStoreError: a change that was interrupted cannot be finished.
    """
    stored = read_tree(root)
    definitions, problems = parse_documents(root, stored.files)
    problems += check_all(definitions)
    if not all(problem.is_warning for problem in problems):
        raise InvalidDefinitionsError(problems)
    files = {name: _workflow_files(one.entity) for name, one in definitions.processes.items()}
    hashes = {file: _hash_of(root / file) for those in files.values() for file in those}
    found = {}
    for key, document in stored.by_key.items():
        text = masked(stored.text(document).strip("\n") + "\n")
        own = files.get(key[1], ()) if key[0] == "process" else ()
        workflow = _combined(f"{file}\0{hashes[file]}" for file in own) if own else None
        found[key] = DefinitionText(text, sha256(text.encode()).hexdigest(), workflow)
    return DefinitionTexts(found, tuple(sorted(hashes)), _fingerprint(root, stored.files.contents, hashes))


def tree_fingerprint(root: Path, workflows: Iterable[str]) -> str:
    """The fingerprint of :class:`DefinitionTexts` of a tree with these workflows; nothing is parsed for it."""
    contents = dict(definition_files(root, lambda _path, _why: None))
    return _fingerprint(root, contents, {file: _hash_of(root / file) for file in workflows})


def _fingerprint(root: Path, contents: Mapping[Path, bytes], workflows: Mapping[str, str]) -> str:
    def lines() -> Iterator[str]:
        for path in sorted(contents):
            yield f"{path.relative_to(root)}\0{sha256(_without_secrets(contents[path])).hexdigest()}"
        for file in sorted(workflows):
            yield f"{file}\0{workflows[file]}"

    return _combined(lines())


def _without_secrets(raw: bytes) -> bytes:
    """So that nobody who reads the fingerprint can try out what a secret is."""
    try:
        text = text_of(raw)
    except UnicodeDecodeError:
        return b""
    return masked(text).encode() if may_hold_secrets(text) else raw


def _workflow_files(process: Process) -> tuple[str, ...]:
    late = process.late_process.inputs if process.late_process else ()
    workflows = [process.workflow, *(one.workflow for one in late if one.workflow)]
    return tuple(sorted({file for one in workflows for file in (*one.files().values(), *one.lib)}))


def _hash_of(path: Path) -> str:
    """Of a file, or of all files in a folder; of what cannot be read the reason."""
    if not path.is_dir():
        return _hash_of_file(path)
    files = sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return _combined(f"{file.relative_to(path)}\0{_hash_of_file(file)}" for file in files)


def _hash_of_file(path: Path) -> str:
    digest = sha256()
    try:
        if not path.is_file():  # a pipe would be waited for
            return "no file"
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        return error.strerror or "unreadable"
    return digest.hexdigest()


def _combined(lines: Iterable[str]) -> str:
    return sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()
