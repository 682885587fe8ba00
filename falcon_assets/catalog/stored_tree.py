"""A tree of definitions as stored: files, documents, and the entity that each of them declares."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from yaml import YAMLError

from falcon_assets.base.texts import STARS, without_credentials
from falcon_assets.catalog.declared import parse_documents
from falcon_assets.catalog.made_feeds import MadeDocument
from falcon_assets.catalog.yaml_files.definition_files import text_of
from falcon_assets.catalog.yaml_files.documents import Document, Files, read_files
from falcon_assets.catalog.yaml_files.file_text import sections
from falcon_assets.catalog.yaml_files.secrets import may_hold_secrets, secret_properties, secret_values, spans_of
from falcon_assets.catalog.yaml_files.yaml_nodes import compose_documents
from falcon_assets.catalog.yaml_files.yaml_text import as_document
from falcon_assets.model.entity import Key


@dataclass(frozen=True)
class Stored:
    root: Path
    files: Files

    @cached_property
    def by_key(self) -> dict[Key, Document]:
        """The document of each entity; of several the first."""
        found: dict[Key, Document] = {}
        for document in self.files.documents:
            if key := key_of(document):
                found.setdefault(key, document)
        return found

    @cached_property
    def made(self) -> dict[Key, Document]:
        """The documents of feeds that flows are made of, which nobody wrote."""
        if not any(kind == "flow" for kind, _ in self.by_key):
            return {}
        return {("feed", name): document for name, document in parse_documents(self.root, self.files)[0].made.items()}

    def document(self, key: Key) -> Document | None:
        """Returns what was written, or made, for an entity; None: there is none."""
        return self.by_key.get(key) or self.made.get(key)

    def number(self, document: Document) -> int:
        return self._places[id(document)][0]

    def text(self, document: Document) -> str:
        """Returns the document's own text; as JSON, which is YAML, if it cannot be separated from its neighbours."""
        if isinstance(document, MadeDocument):
            return as_document(document.data)
        return self._places[id(document)][1]

    @cached_property
    def _places(self) -> dict[int, tuple[int, str]]:
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


def read_tree(root: Path, only: str | None = None) -> Stored:
    """Returns the present tree, or ``only`` the file of a position; an empty one if there is no folder yet.

    Raises:
        DefinitionStoreError: a change that was interrupted cannot be finished.
    """
    return Stored(root, read_files(root, only) if root.is_dir() else Files())


def key_of(document: Document) -> Key | None:
    data = document.data if isinstance(document.data, dict) else {}
    kind, name = data.get("kind"), data.get("name")
    return (kind, name) if isinstance(kind, str) and isinstance(name, str) else None


def as_json(document: Document) -> str:
    return json.dumps(document.data, indent=2, ensure_ascii=False) + "\n"


def masked(text: str) -> str:
    """Returns the text of legal definitions with stars for all secrets, fit to be recorded and shown.

    Secrets are the values of storage options, of credentials, of options of drivers and of keys that are secret by
    their names, and passwords in URLs, but not names of environment variables and of files. The result does not depend
    on the secret.
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
    """Whether a text of :func:`masked` has stars for values: YAML does not allow them there."""
    try:
        list(compose_documents(text))
    except YAMLError:
        return True
    return False
