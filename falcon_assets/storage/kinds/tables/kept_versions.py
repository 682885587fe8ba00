"""Versions of instances in a table that were replaced and are kept.

A note for each lists its partitions, from before they are switched until before the files are deleted::

    TABLE/_versions/_kept/FEED/INSTANCE/VERSION

While an instance of several partitions is replaced, another note lists the old and the new ones::

    TABLE/_versions/_switches/FEED/INSTANCE

Some catalogs replace such an instance by several calls. By that note the next run knows a state between two versions,
left by a killed run, which is no version.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import NamedTuple

from falcon_assets.errors import UnreachableError
from falcon_assets.planning.eviction import StoredVersion
from falcon_assets.storage.kinds.tables.look import version_of
from falcon_assets.storage.kinds.tables.table_folder import TableFolder
from falcon_assets.storage.kinds.tables.version_folders import GRACE_SECONDS, VersionFolders
from falcon_assets.storage.output_target import KeptAs
from falcon_assets.storage.tables.catalog import NewPartition, Partition, TableCatalog, Values

_Places = dict[Values, tuple[str, ...]]


class Replaced(NamedTuple):
    path: str
    partitions: tuple[Partition, ...]

    def lost(self, folder: TableFolder) -> list[str]:
        """Returns those of its files and folders that are gone; those on other stores are not looked for."""
        places = ((place, folder.path(place)) for one in self.partitions for place in one.places)
        return [place for place, path in places if path is not None and not folder.is_there(path)]

    def place(self, folder: TableFolder) -> str:
        places = [folder.path(place) or place for one in self.partitions for place in one.places]
        return places[0] if len(places) == 1 else posixpath.commonpath(places)


class KeptPartitions:
    """The kept versions of one table; methods raise OSError."""

    def __init__(self, versions: VersionFolders) -> None:
        self._versions, self._folder = versions, versions.folder
        self._root, self._switches = f"{versions.root}/_kept", f"{versions.root}/_switches"

    @contextmanager
    def replacing(
        self, of: KeptAs, path: str, before: Mapping[Values, Partition], new: Mapping[Values, NewPartition]
    ) -> Iterator[None]:
        """Keeps ``before`` during the replacement, unless a killed run left it between two versions."""
        are_several, switch = len(before.keys() | new.keys()) > 1, f"{self._switches}/{of.name}"
        old, coming = self._places(before), self._places(new)
        is_whole = not (are_several and self._are_between(switch, old))
        if before and is_whole:
            self.keep(of, path, [*before.values()])
        if are_several:
            self._folder.write(switch, json.dumps([is_whole, [*old.items()], [*coming.items()]]))
        yield
        if are_several:
            self._folder.remove(switch)

    def keep(self, of: KeptAs, path: str, partitions: Sequence[Partition]) -> None:
        note = f"{self._root}/{of.name}/{version_of(partitions).version}"
        self._folder.write(note, json.dumps([path, [asdict(one) for one in partitions]]))

    def _are_between(self, switch: str, now: _Places) -> bool:
        """Whether some of the partitions are old ones, and some new ones, of an unfinished switch."""
        try:
            was_whole, *both = json.loads(self._folder.read(switch))
            old, new = ({tuple(key): tuple(places) for key, places in each} for each in both)
        except (FileNotFoundError, ValueError, TypeError):
            return False  # nobody was killed there, or somebody else wrote it
        if now == old:
            return not was_whole
        return now != new and all(places in (old.get(key), new.get(key)) for key, places in now.items())

    def get(self, of: KeptAs, version: str) -> Replaced | None:
        return self.read(f"{self._root}/{of.name}/{version}")

    def forget(self, of: KeptAs, version: str) -> None:
        self._folder.remove(f"{self._root}/{of.name}/{version}")

    def of_feed(self, feed: str, instance: datetime | None = None) -> list[tuple[StoredVersion, str]]:
        """Returns kept versions with all files, and the URI of the instance; the ``prefix`` of each is its note.

        One may be the present version all the same, after a killed or refused switch. Raises UnreachableError if the
        folder of the table is not there: it is unknown whether they are gone.
        """
        if not self._folder.is_mounted():
            raise UnreachableError(f"the folder of the table is not there: {self._folder.root}")
        own = f"{self._root}/{KeptAs(feed, instance).name if instance else feed}"
        return [
            (StoredVersion(of.instance, posixpath.basename(note), one.place(self._folder), note), one.path)
            for note in self._notes(own)
            if (of := KeptAs.named(posixpath.dirname(note).removeprefix(f"{self._root}/")))
            if (one := self.read(note)) and not one.lost(self._folder)
        ]

    def places(self) -> Iterator[str]:
        for note in self._notes(self._root):
            if one := self.read(note):
                for place in (place for partition in one.partitions for place in partition.places):
                    if path := self._folder.path(place):
                        yield path

    def drop(self, note: str) -> None:
        if old := self.read(note):
            for one in old.partitions:
                for file in one.places:
                    self._versions.note_dropped(one.values, file)
        self._folder.remove(note)
        for empty in (posixpath.dirname(note), posixpath.dirname(posixpath.dirname(note))):
            self._folder.prune(empty)

    def _notes(self, folder: str) -> list[str]:
        found = sorted(self._folder.below(folder))
        return [one for one in found if not posixpath.basename(one).startswith(".")]

    def read(self, note: str) -> Replaced | None:
        """Returns the content of a note; None: it is missing, or not ours."""
        try:
            path, partitions = json.loads(self._folder.read(note))
            tuples = ({**one, "values": tuple(one["values"]), "places": tuple(one["places"])} for one in partitions)
            return Replaced(path, tuple(Partition(**one) for one in tuples))
        except (OSError, ValueError, TypeError, KeyError):
            return None  # it has just gone, or somebody else wrote it

    def _places(self, partitions: Mapping[Values, Partition] | Mapping[Values, NewPartition]) -> _Places:
        """Returns places in one form, as catalogs may change URLs."""
        return {
            values: tuple(self._folder.path(place) or place for place in one.places)
            for values, one in partitions.items()
        }


def remove_old(
    catalog: TableCatalog, database: str, table: str, versions: VersionFolders, grace: float = GRACE_SECONDS
) -> None:
    """Removes versions that were replaced or dropped ``grace`` seconds ago, and remains of killed runs."""
    old = list(versions.old(grace))
    if not old:
        return
    is_there = catalog.layout(database, table) is not None  # it may be held until the first that is published
    there = catalog.partitions(database, table, catalog.values(database, table, {})) if is_there else {}
    every = (versions.folder.path(place) for one in there.values() for place in one.places)  # several may share one
    places = {place for place in every if place}
    places.update(KeptPartitions(versions).places())  # after the catalog: what is replaced has its note before
    used = {folder for path in places for folder in _with_parents(path)}
    for one in old:
        if one.place in used or not places.isdisjoint(_with_parents(one.place)):
            versions.folder.remove(one.note)  # published, or not dropped, before a crash; in use elsewhere; or kept
        else:
            versions.drop(one.place, one.note)


def _with_parents(path: str) -> Iterator[str]:
    while path.strip("/"):
        yield path
        path = path.rpartition("/")[0]
