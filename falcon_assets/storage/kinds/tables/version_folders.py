"""The folders of a table in which partitions are written: one for each version of a partition.

They are in ``TABLE/_versions``, which readers of the whole folder do not take for data::

    TABLE/_versions/PARTITION/ID      what was written; the catalog says which one is the partition. For an instance
                                      of several partitions it has a folder region=US for each
    TABLE/_versions/_notes/ID         that ID may be removed: written before it is begun, replaced or dropped
    TABLE/_versions/_notes/held-PARTITION    which ID was found wrong, and is kept aside for days

A note is deleted once its version is the partition. So what a crash leaves has a note, as has what was replaced or
dropped; it is removed a day later, because it may still be read. Partitions that others wrote are elsewhere in the
folder of the table, and have notes once they were dropped.
"""

from __future__ import annotations

import json
import posixpath
import time
import uuid
from collections.abc import Collection, Iterator
from typing import NamedTuple

from falcon_assets.storage.kinds.tables.table_folder import TableFolder, table_folder
from falcon_assets.storage.staging import HELD_SECONDS, place_key
from falcon_assets.storage.tables.catalog import TableLayout, Values
from falcon_assets.storage.tables.table_store import TableStore

GRACE_SECONDS = 24 * 3600.0
_VERSIONS, _NOTES, _HELD = "_versions", "_notes", "held-"


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
        place = f"{self.root}/{self._partition(values)}/{uuid.uuid4().hex}"
        self.note(values, place)
        self.folder.prepare(place)
        return place

    def _partition(self, values: Values) -> str:
        return place_key("/".join(f"{key}={value}" for key, value in zip(self._keys, values, strict=True)))

    def folder_of(self, place: str) -> str:
        """Returns the folder of the version around a place; the place itself if it is not ours."""
        if not self.has(place):
            return place
        return "/".join([self.root, *place.removeprefix(f"{self.root}/").split("/")[:2]])

    def note(self, values: Values, place: str) -> None:
        """Notes that a version may be removed; ignores folders that are not ours."""
        if self.has(place):
            self._write_note(values, place)

    def note_dropped(self, values: Values, url: str) -> None:
        """Notes that a folder or file of a partition may be removed; ignores places outside of the table."""
        place = self.folder.path(url)
        if place is None:
            return
        if self.has(place):
            self._write_note(values, self.folder_of(place))
        elif place.startswith(f"{self.folder.root}/"):
            self._write_note(values, place)

    def is_published(self, place: str) -> None:
        self.folder.remove(self._note_of(place))

    def hold(self, values: Values, place: str, used: Collection[str]) -> None:
        """Keeps a version aside for days, in place of the one that was before; ``used`` as for :meth:`drop_held`."""
        self.drop_held(values, used)
        self._write(self._note_held(values), values, place)
        self.is_published(place)

    def drop_held(self, values: Values, used: Collection[str]) -> None:
        """Removes what is kept aside, unless it is among ``used`` versions: a kill may have come after its switch."""
        place, note = self.held(values), self._note_held(values)
        if place in used:
            self.folder.remove(note)
        elif place is not None:
            self.drop(place, note)

    def held(self, values: Values) -> str | None:
        """Returns the place of what is kept aside; None: nothing is."""
        try:
            place = self._read(self._note_held(values))[1]
        except (FileNotFoundError, ValueError):
            return None
        return place if self.has(place) else None

    def _note_held(self, values: Values) -> str:
        return f"{self._notes}/{_HELD}{self._partition(values)}"

    def drop(self, place: str, note: str | None = None) -> None:
        """``note``: that of a place which is not ours, or is kept aside."""
        self.folder.remove(place)
        if not self.folder.is_there(place):
            self.folder.remove(note or self._note_of(place))

    def old(self, grace: float = GRACE_SECONDS) -> Iterator[OldVersion]:
        for note, written in sorted(self.folder.below(self._notes).items()):
            name = posixpath.basename(note)
            if time.time() - written < (HELD_SECONDS if name.startswith(_HELD) else grace):
                continue
            if name.startswith("."):
                self.folder.remove(note)  # half of one, of a run that was killed before it did anything
                continue
            try:
                values, place = self._read(note)
                if place.startswith(f"{self.folder.root}/"):
                    yield OldVersion(note, values, place)
            except (FileNotFoundError, ValueError):
                continue  # another run removed it, or somebody else wrote it

    def has(self, place: str) -> bool:
        return place.startswith(f"{self.root}/")

    def _write_note(self, values: Values, place: str) -> None:
        self._write(self._note_of(place), values, place)

    def _write(self, note: str, values: Values, place: str) -> None:
        self.folder.write(note, json.dumps([values, posixpath.relpath(place, self.root)]))

    def _read(self, note: str) -> tuple[Values, str]:
        """Returns values and place; raises FileNotFoundError, or ValueError where somebody else wrote it."""
        values, relative = json.loads(self.folder.read(note))
        return tuple(values), posixpath.normpath(f"{self.root}/{relative}")

    def _note_of(self, place: str) -> str:
        own = posixpath.basename(place) if self.has(place) else place_key(posixpath.relpath(place, self.root))
        return f"{self._notes}/{own}"
