"""The folders of a table in which partitions are written: one for each version of a partition.

They are in ``TABLE/_versions``, which readers of the whole folder do not take for data::

    TABLE/_versions/PARTITION/ID      what was written; the catalog says which one is the partition. For an instance
                                      of several partitions it has a folder region=US for each
    TABLE/_versions/_notes/ID         that ID may be removed: written before it is begun, replaced or dropped

A note is deleted once its version is the partition. So what a crash leaves has a note, as has what was replaced or
dropped; it is removed a day later, because it may still be read. Partitions that others wrote are elsewhere in the
folder of the table, and have notes once they were dropped.
"""

from __future__ import annotations

import json
import posixpath
import time
import uuid
from collections.abc import Iterator
from typing import NamedTuple

from falcon_assets.storage.kinds.tables.table_folder import TableFolder, table_folder
from falcon_assets.storage.staging import place_key
from falcon_assets.storage.tables.catalog import TableLayout, Values
from falcon_assets.storage.tables.table_store import TableStore

GRACE_SECONDS = 24 * 3600.0
_VERSIONS, _NOTES = "_versions", "_notes"


class OldVersion(NamedTuple):
    note: str
    values: Values
    place: str


class VersionFolders:
    """The versions of the partitions of one table; paths are absolute, methods raise OSError."""

    def __init__(self, layout: TableLayout, folder: TableFolder) -> None:
        self._keys, self.folder = layout.key_names, folder
        self.root = f"{folder.root}/{_VERSIONS}"
        self._notes = f"{self.root}/{_NOTES}"

    @classmethod
    def of(cls, tables: TableStore, layout: TableLayout) -> VersionFolders:
        return cls(layout, table_folder(tables, layout.name, layout.location))

    def new(self, values: Values) -> str:
        """Returns the place of a new version, which is missing yet; the folders above it and its note exist."""
        pairs = zip(self._keys, values, strict=True)
        place = f"{self.root}/{place_key('/'.join(f'{key}={value}' for key, value in pairs))}/{uuid.uuid4().hex}"
        self.note(values, place)
        self.folder.prepare(place)
        return place

    def folder_of(self, place: str) -> str:
        """Returns the folder of the version around a place; the place itself if it is not ours."""
        if not self._has(place):
            return place
        return "/".join([self.root, *place.removeprefix(f"{self.root}/").split("/")[:2]])

    def note(self, values: Values, place: str) -> None:
        """Notes that a version may be removed; ignores folders that are not ours."""
        if self._has(place):
            self._write_note(values, place)

    def note_dropped(self, values: Values, url: str) -> None:
        """Notes that a folder or file of a partition may be removed; ignores places outside of the table."""
        place = self.folder.path(url)
        if place is None:
            return
        if self._has(place):
            self._write_note(values, self.folder_of(place))
        elif place.startswith(f"{self.folder.root}/"):
            self._write_note(values, place)

    def is_published(self, place: str) -> None:
        self.folder.remove(self._note_of(place))

    def drop(self, place: str) -> None:
        self.folder.remove(place)
        if not self.folder.is_there(place):
            self.is_published(place)

    def old(self, grace: float = GRACE_SECONDS) -> Iterator[OldVersion]:
        for note, written in sorted(self.folder.below(self._notes).items()):
            if time.time() - written < grace:
                continue
            if posixpath.basename(note).startswith("."):
                self.folder.remove(note)  # half of one, of a run that was killed before it did anything
                continue
            try:
                values, relative = json.loads(self.folder.read(note))
                place = posixpath.normpath(f"{self.root}/{relative}")
                if place.startswith(f"{self.folder.root}/"):
                    yield OldVersion(note, tuple(values), place)
            except (FileNotFoundError, ValueError):
                continue  # another run removed it, or somebody else wrote it

    def _has(self, place: str) -> bool:
        return place.startswith(f"{self.root}/")

    def _write_note(self, values: Values, place: str) -> None:
        self.folder.write(self._note_of(place), json.dumps([values, posixpath.relpath(place, self.root)]))

    def _note_of(self, place: str) -> str:
        own = posixpath.basename(place) if self._has(place) else place_key(posixpath.relpath(place, self.root))
        return f"{self._notes}/{own}"
