"""Definitions of a tree in comparable form: texts without secrets, and hashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from falcon_assets.base.texts import without_credentials
from falcon_assets.catalog.checks import check_all
from falcon_assets.catalog.declared import parse_documents
from falcon_assets.catalog.stored_tree import masked, read_tree
from falcon_assets.catalog.workflow_files import WorkflowFile, combined, declared_paths, files_at, hash_at
from falcon_assets.catalog.yaml_files.definition_files import definition_files, text_of
from falcon_assets.catalog.yaml_files.secrets import may_hold_secrets
from falcon_assets.catalog.yaml_files.yaml_text import as_document
from falcon_assets.errors import InvalidDefinitionsError
from falcon_assets.model.entity import Key


@dataclass(frozen=True)
class DefinitionText:
    """The definition of an entity, with stars for secrets: another password makes no new version.

    The hashes are SHA-256; ``workflow_hash`` None: it has no workflow files.
    """

    text: str
    text_hash: str
    workflow_hash: str | None
    files: tuple[WorkflowFile, ...] = ()


@dataclass(frozen=True)
class DefinitionTexts:
    by_key: Mapping[Key, DefinitionText]
    workflows: tuple[str, ...]
    fingerprint: str


def read_definition_texts(root: Path) -> DefinitionTexts:
    """Returns the present definitions.

    Raises:
        InvalidDefinitionsError: they have problems.
        DefinitionStoreError: a change that was interrupted cannot be finished.
    """
    stored = read_tree(root)
    definitions, problems = parse_documents(root, stored.files)
    problems += check_all(definitions)
    if not all(problem.is_warning for problem in problems):
        raise InvalidDefinitionsError(problems)
    paths = {name: declared_paths(one.entity) for name, one in definitions.processes.items()}
    files = {path: files_at(root, path) for those in paths.values() for path in those}
    hashes = {path: hash_at(root, path, those) for path, those in files.items()}
    found = {}
    texts = {key: stored.text(document) for key, document in stored.by_key.items()}
    texts |= {("feed", name): as_document(one.data) for name, one in definitions.made.items()}
    for key, whole in texts.items():
        text = masked(whole.strip("\n") + "\n")
        own = paths.get(key[1], ()) if key[0] == "process" else ()
        workflow = combined(f"{path}\0{hashes[path]}" for path in own) if own else None
        of_workflows = tuple({one.path: one for path in own for one in files[path]}.values())
        found[key] = DefinitionText(text, sha256(text.encode()).hexdigest(), workflow, of_workflows)
    return DefinitionTexts(found, tuple(sorted(hashes)), _fingerprint(root, stored.files.contents, hashes))


def tree_fingerprint(root: Path, workflows: Iterable[str]) -> str:
    """Returns the fingerprint of :class:`DefinitionTexts` of a tree with these workflows, without parsing."""
    contents = dict(definition_files(root, lambda _path, _why: None))
    return _fingerprint(root, contents, {path: hash_at(root, path, files_at(root, path)) for path in workflows})


def _fingerprint(root: Path, contents: Mapping[Path, bytes], workflows: Mapping[str, str]) -> str:
    hashes = {path: sha256(_without_secrets(raw)).hexdigest() for path, raw in contents.items()}
    lines = [f"{path.relative_to(root)}\0{hashes[path]}" for path in sorted(hashes)]
    return combined([*lines, *(f"{file}\0{workflows[file]}" for file in sorted(workflows))])


def _without_secrets(raw: bytes) -> bytes:
    """Prevents guessing secrets by comparing fingerprints."""
    try:
        text = text_of(raw)
    except UnicodeDecodeError:
        return b""
    return (masked(text) if may_hold_secrets(text) else without_credentials(text)).encode()
