"""Replaced and evicted instances: removed a while after they were moved out of their place.

A reader that opened the folder just before the move still lists it, and would see a part of the old instance (measured:
within a few hundred rewrites, on a busy machine). So they wait until no reader can have them open::

    STAGING/replaced/ATTEMPT/old    what publications replaced
    STAGING/evicted/BATCH/N         what retention evicted: apart, so that no publication has to remove it
    STAGING/held/KEY/written        an output that was found wrong, and is not published: for days, for people

The time of the enclosing folder says since when.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.entry import modified_at

BATCH_LOCK = "lock"


class SetAside:
    def __init__(self, store: ClusterStore, name: str) -> None:
        self._files, self._fs, self.folder = store.files, store.fs, f"{store.staging}/{name}"

    def make(self) -> None:
        """Makes the folder: :meth:`take_folder` needs no space on the disk then."""
        try:
            self._fs.makedirs(self.folder, exist_ok=True)
        except NotADirectoryError:
            self._fs.makedirs(self.folder.rpartition("/")[0], exist_ok=True)  # names what is in the way
            raise

    def new_batch(self) -> str:
        """The root has just been seen: of one that was moved, this would make another in its place."""
        batch = f"{self.folder}/{uuid.uuid4().hex}"
        self._fs.makedirs(batch, exist_ok=True)
        return batch

    def take(self, place: str) -> None:
        """Takes what has just been seen at ``place``."""
        self._files.move(place, f"{self.new_batch()}/old")

    def take_folder(self, attempt: str) -> None:
        """Takes a folder that was changed when what is in it was moved there."""
        self._files.move(attempt, f"{self.folder}/{uuid.uuid4().hex}")

    def purge(self, patience: float, *, waits: bool) -> None:
        """Removes what has been out of its place for ``patience`` seconds; ``waits`` until all of it has."""
        for listed in self._entries():
            if not waits and _left(listed, patience):
                continue
            with suppress(OSError):  # others are faster, have put more into it, or have not given the permission
                entry, is_folder = str(listed["name"]), listed["type"] == "directory"  # or of a full disk
                places = self._files.entries(entry) if is_folder else []
                if waits and (not is_folder or {place.rpartition("/")[2] for place in places} - {BATCH_LOCK}):
                    time.sleep(_left(self._fs.info(entry), patience))
                for place in places:
                    self._files.discard(place)
                self._fs.rmdir(entry) if is_folder else self._fs.rm_file(entry)

    def since(self) -> list[tuple[datetime, str]]:
        """Returns what is here, by path, and since when."""
        return [(at, str(entry["name"])) for entry in self._entries() if (at := modified_at(entry))]

    @property
    def is_empty(self) -> bool:
        return not self._entries()

    def _entries(self) -> list[Mapping[str, Any]]:
        try:
            return sorted(self._fs.ls(self.folder, detail=True), key=lambda entry: str(entry["name"]))
        except (FileNotFoundError, NotADirectoryError):
            return []


def _left(entry: Mapping[str, Any], patience: float) -> float:
    taken = modified_at(entry)
    return min(max(taken.timestamp() + patience - time.time(), 0.0), patience) if taken else 0.0


def replaced(store: ClusterStore) -> SetAside:
    return SetAside(store, "replaced")


def held_aside(store: ClusterStore) -> SetAside:
    return SetAside(store, "held")


def evicted(store: ClusterStore) -> SetAside:
    return SetAside(store, "evicted")
