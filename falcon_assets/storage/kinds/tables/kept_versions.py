"""Versions of instances in a table that were replaced and are kept.

A note for each says what its partitions were::

    TABLE/_versions/_kept/FEED/INSTANCE/VERSION

It is written before the partitions are switched, and goes before the files. While there is a note,
:mod:`.old_versions` leaves its files alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from falcon_assets.durable import make_folders, sync
from falcon_assets.errors import UnreachableError
from falcon_assets.planning.retention.versions import StoredVersion
from falcon_assets.storage.kinds.tables.instance_version import version_of
from falcon_assets.storage.kinds.tables.version_folders import VersionFolders, path_of
from falcon_assets.storage.output_target import KeptAs
from falcon_assets.storage.tables.catalog import Partition


class Replaced(NamedTuple):
    """An instance as it was."""

    path: str
    """Its URI."""
    partitions: tuple[Partition, ...]
    """One at least."""

    @property
    def lost(self) -> list[str]:
        """Those of its files and folders that are not there any more."""
        return [place for one in self.partitions for place in one.places if not path_of(place).exists()]

    @property
    def place(self) -> str:
        """Where it is: its folder or file, or the folder that they have in common."""
        places = [str(path_of(place)) for one in self.partitions for place in one.places]
        return places[0] if len(places) == 1 else os.path.commonpath(places)


class KeptPartitions:
    """Those of one table; methods raise OSError as the system says.

    Args:
        versions: The versions of the table.
    """

    def __init__(self, versions: VersionFolders) -> None:
        self._versions = versions
        self._root = versions.root / "_kept"

    def keep(self, of: KeptAs, path: str, partitions: Sequence[Partition]) -> None:
        """Writes down what an instance is that is about to be replaced.

        Args:
            of: The instance.
            path: Its URI.
            partitions: All of it, one at least.
        """
        folder, version = self._root / of.name, version_of(partitions).version
        make_folders(folder)
        new = folder / f".{version}"
        new.write_text(json.dumps([path, [asdict(one) for one in partitions]]), encoding="utf-8")
        sync(new)
        new.replace(folder / version)
        sync(folder)

    def get(self, of: KeptAs, version: str) -> Replaced | None:
        """What the instance was in that version; None: it is not kept."""
        return read_note(self._root / of.name / version)

    def forget(self, of: KeptAs, version: str) -> None:
        """Takes the note away of a version that is the instance now."""
        (self._root / of.name / version).unlink(missing_ok=True)

    def of_feed(self, feed: str, instance: datetime | None = None) -> list[tuple[StoredVersion, str]]:
        """Those of a feed, or of one of its instances, whose files are all there, each with the URI of its instance.

        The prefix of each is its note.
        One may be the instance all the same: of a run that was killed, or whose switch was refused.

        Raises:
            UnreachableError: the folder of the table is not there, so that nobody knows whether they went.
        """
        table = self._versions.root.parent
        if not table.is_dir():
            raise UnreachableError(f"the folder of the table is not there: {table}")
        own = self._root / feed
        return [
            (StoredVersion(of.instance, note.name, one.place, str(note)), one.path)
            for folder in ([self._root / KeptAs(feed, instance).name] if instance else _entries(own))
            if (of := KeptAs.named(f"{feed}/{folder.name}"))
            for note in _entries(folder)
            if (one := read_note(note)) and not one.lost
        ]

    def places(self) -> Iterator[Path]:
        """Where the files of all of them are."""
        for note in sorted(self._root.glob("*/*/*")):
            if one := read_note(note):
                yield from (path_of(place) for partition in one.partitions for place in partition.places)

    def drop(self, note: Path) -> None:
        """Lets the version with that note go: its files are removed as those of dropped partitions are."""
        if old := read_note(note):
            for one in old.partitions:
                for file in one.places:
                    self._versions.note_dropped(one.values, path_of(file))
            note.unlink(missing_ok=True)
        for empty in (note.parent, note.parent.parent):
            with suppress(OSError):
                empty.rmdir()


def read_note(note: Path) -> Replaced | None:
    """What the note says; None: it is not there, or none of ours."""
    try:
        path, partitions = json.loads(note.read_text(encoding="utf-8"))
        tuples = ({**one, "values": tuple(one["values"]), "places": tuple(one["places"])} for one in partitions)
        return Replaced(path, tuple(Partition(**one) for one in tuples))
    except (OSError, ValueError, TypeError, KeyError):
        return None  # it has just gone, or somebody else wrote it


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    except FileNotFoundError:
        return []
