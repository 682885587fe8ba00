"""The folders of a table in which partitions are written: one for each version of a partition.

They lie in ``TABLE/_versions``, which nobody takes for data of the table who reads its folder as a whole::

    TABLE/_versions/PARTITION/ID      what was written; the catalog says which one is the partition. Of an instance
                                      that is several partitions, a folder region=US for each is in it
    TABLE/_versions/_notes/ID                     that ID may go: written before a version is begun, replaced or dropped

A note is taken away once its version is the partition. So what a crash leaves has a note, and so has what was replaced
or dropped; it goes a day later, because somebody may be reading it. Partitions that others wrote lie elsewhere in the
folder of the table, and have notes too once they were dropped.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from falcon_assets.durable import make_folders, sync
from falcon_assets.errors import StorageError
from falcon_assets.storage.staging import place_key
from falcon_assets.storage.tables.catalog import TableLayout, Values

GRACE_SECONDS = 24 * 3600.0
"""How long a version stays that is a partition no more."""
_VERSIONS, _NOTES = "_versions", "_notes"


class OldVersion(NamedTuple):
    """A version that may go, if it is not the partition."""

    note: Path
    values: Values
    folder: Path


def path_of(place: str) -> Path:
    """The path of a place on a file system."""
    return Path("/" + place.removeprefix("file:").lstrip("/"))


class VersionFolders:
    """The versions of the partitions of one table; its methods raise OSError as the system says.

    Args:
        layout: The table.

    Raises:
        StorageError: it lies on no file system of this machine.
    """

    def __init__(self, layout: TableLayout) -> None:
        if not layout.location.startswith("file:"):
            raise StorageError(
                f"table {layout.name} lies at {layout.location}, and partitions are written, kept and evicted on "
                "file:// only"
            )
        self._keys = layout.key_names
        self.root = path_of(layout.location) / _VERSIONS
        """Where they lie."""
        self._notes = self.root / _NOTES

    def new(self, values: Values) -> Path:
        """The place of a new version, which is not there yet; the folders above it and its note are."""
        pairs = zip(self._keys, values, strict=True)
        folder = self.root / place_key("/".join(f"{key}={value}" for key, value in pairs)) / uuid.uuid4().hex
        make_folders(self._notes)
        self.note(values, folder)
        make_folders(folder.parent)
        return folder

    def folder_of(self, place: Path) -> Path:
        """The folder of the version that a place is in; the place itself, where it is in none of ours."""
        return self.root.joinpath(*place.relative_to(self.root).parts[:2]) if self.root in place.parents else place

    def note(self, values: Values, folder: Path) -> None:
        """Writes down that a version may go; nothing for a folder that is none of ours."""
        if self.root in folder.parents:
            self._write_note(values, folder)

    def note_dropped(self, values: Values, place: Path) -> None:
        """Writes down that a folder or file of a partition may go; nothing for what lies outside of the table."""
        if self.root in place.parents:
            self._write_note(values, self.folder_of(place))
        elif self.root.parent in place.parents:
            make_folders(self._notes)
            self._write_note(values, place)

    def is_published(self, folder: Path) -> None:
        """Takes the note of a version away."""
        self._note_of(folder).unlink(missing_ok=True)

    def _write_note(self, values: Values, folder: Path) -> None:
        note = self._note_of(folder)
        note.write_text(json.dumps([values, os.path.relpath(folder, self.root)]), encoding="utf-8")
        sync(note)
        sync(self._notes)

    def _note_of(self, folder: Path) -> Path:
        is_ours = self.root in folder.parents
        return self._notes / (folder.name if is_ours else place_key(os.path.relpath(folder, self.root)))

    def drop(self, folder: Path) -> None:
        """Removes a version that nobody has seen."""
        if folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
        else:
            folder.unlink(missing_ok=True)
        if not folder.exists():
            self.is_published(folder)

    def old(self, grace: float = GRACE_SECONDS) -> Iterator[OldVersion]:
        """The versions whose notes are older than so many seconds."""
        for note in sorted(self._notes.iterdir()) if self._notes.is_dir() else ():
            try:
                if time.time() - note.stat().st_mtime >= grace:
                    values, relative = json.loads(note.read_text(encoding="utf-8"))
                    place = Path(os.path.normpath(self.root / relative))
                    if self.root.parent in place.parents:
                        yield OldVersion(note, tuple(values), place)
            except (FileNotFoundError, ValueError):
                continue  # another run removed it, or a crash came while it was written
