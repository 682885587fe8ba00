"""The definitions as they are stored: files, documents, and which entity each of them declares."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from yaml import YAMLError

from falcon_assets.base.texts import STARS, without_credentials
from falcon_assets.catalog.yaml_files.documents import Document, Files, read_files
from falcon_assets.catalog.yaml_files.file_text import sections
from falcon_assets.catalog.yaml_files.secrets import may_hold_secrets, secret_properties, secret_values, spans_of
from falcon_assets.catalog.yaml_files.yaml_nodes import compose_documents
from falcon_assets.model.entity import Key


@dataclass(frozen=True)
class Stored:
    """A tree of definitions.

    Attributes:
        root: Its folder; perhaps not there yet.
        files: What is in it.
    """

    root: Path
    files: Files

    @cached_property
    def by_key(self) -> dict[Key, Document]:
        """The document that declares each entity; of several the first."""
        found: dict[Key, Document] = {}
        for document in self.files.documents:
            if key := key_of(document):
                found.setdefault(key, document)
        return found

    def number(self, document: Document) -> int:
        """Which document of its file it is, from 0."""
        return self._places[id(document)][0]

    def text(self, document: Document) -> str:
        """The document's own text; as JSON, which is YAML too, where it cannot be told from its neighbours."""
        return self._places[id(document)][1]

    @cached_property
    def _places(self) -> dict[int, tuple[int, str]]:
        """Number and text of each document."""
        by_path: dict[Path, list[Document]] = {}
        for document in self.files.documents:
            by_path.setdefault(document.path, []).append(document)
        places = {}
        for path, documents in by_path.items():
            texts = [one.text for one in sections(text_of(self.files.contents[path]))]
            if len(texts) != len(documents):
                texts = [as_json(one) for one in documents]
            places.update({id(one): place for one, place in zip(documents, enumerate(texts), strict=True)})
        return places


def read_tree(root: Path) -> Stored:
    """The tree as it is; where there is no folder yet, an empty one.

    Raises:
        DefinitionStoreError: a change that was interrupted cannot be finished.
    """
    return Stored(root, read_files(root) if root.is_dir() else Files())


def key_of(document: Document) -> Key | None:
    """The entity that the document declares, as far as it can be seen."""
    data = document.data if isinstance(document.data, dict) else {}
    kind, name = data.get("kind"), data.get("name")
    return (kind, name) if isinstance(kind, str) and isinstance(name, str) else None


def as_json(document: Document) -> str:
    """What the document says, as JSON."""
    return json.dumps(document.data, indent=2, ensure_ascii=False) + "\n"


def text_of(raw: bytes) -> str:
    """The text of a file that was read without problems."""
    return raw.decode("utf-8-sig")


def masked(text: str) -> str:
    """The text of legal definitions with stars for all that is secret in them, as it may be recorded and shown.

    That are the values of storage options, of what else is secret by its name, and passwords in URLs; names of
    environment variables are not. Nothing is told of a secret: with another one the text is the same.
    """
    try:
        roots = list(compose_documents(text))
        secrets = [node for root in roots for node in secret_values(root, names=False, legal=True)]
        secrets += [node for root in roots for node in secret_properties(root)]
    except YAMLError:  # a document without the directives in front of it
        return re.sub(r"\S", "*", text) if may_hold_secrets(text) else without_credentials(text)
    for start, end in spans_of(text, secrets):
        text = f"{text[:start]}{STARS}{text[end:]}"
    return without_credentials(text)


def has_hidden_values(text: str) -> bool:
    """Whether there are stars in what :func:`masked` made of a definition: where a value is to be, they are no YAML."""
    try:
        list(compose_documents(text))
    except YAMLError:
        return True
    return False
