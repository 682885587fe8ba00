"""Encrypted values where they stand in files of definitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from falcon_assets.catalog.yaml_files.definition_files import definition_files
from falcon_assets.catalog.yaml_files.documents import Document, Files, KeyPath, read_file
from falcon_assets.model.reference import ENCRYPTED, encrypted_in


@dataclass(frozen=True)
class StoredSecret:
    """An encrypted value in a file; ``place`` as of :attr:`.EncryptedValue.place`."""

    document: Document
    path: KeyPath
    place: str
    text: str

    @property
    def key(self) -> str:
        return self.place.split(" ", 2)[2]


def encrypted_values(root: Path, text: str = ENCRYPTED) -> Iterator[StoredSecret]:
    """Yields the encrypted values of the files below ``root`` that have ``text`` in them, of legal documents or not."""
    for path, raw in definition_files(root, lambda _path, _why: None):
        if text.encode() in raw:
            files = Files()
            read_file(path, raw, files)
            for document in files.documents:
                yield from (StoredSecret(document, *found) for found in encrypted_in(document.data))
