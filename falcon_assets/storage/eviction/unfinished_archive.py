"""A copy to an archive until it comes to its end: where it is made, and how it goes if nobody completes it.

Nothing of it is ever taken for what an archive holds already. On file systems it is made out of sight and moved to its
place at the end; elsewhere files are copied to their place, and a note says which of them the copy makes::

    STAGING/archived/KEY    the copy; or the note: relative names as JSON, "" for an instance that is a single file
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.staging import place_key


class UnfinishedArchive:
    """Raises OSError as the store says.

    Args:
        store: Of the archive.
        path: Where the instance is to be archived, below the root.
        flag: Name of the feed's availability flag, which is copied last: where the copy has made it, it has ended.
    """

    def __init__(self, store: ClusterStore, path: str, flag: str | None) -> None:
        self.store, self.path = store, path
        self._flag, self._place = flag, store.path(path)
        self._own = f"{store.staging}/archived/{place_key(path)}"

    @property
    def base(self) -> str:
        """The absolute path that files are copied to or below."""
        return self._own if self.store.is_local else self._place

    def begin(self, names: Collection[str]) -> Collection[str]:
        """To be called before anything is copied; goes on with a copy that was killed.

        Args:
            names: The relative names of all files that there are to be.

        Returns:
            Those that the copy may make, or make anew: the others are there, and not of this copy.
        """
        if self.store.is_local:
            return names
        noted = self._noted()
        self._drop(noted - set(names))  # they have gone from the original meanwhile
        ours = (noted | (set(names) - self._there())) & set(names)
        if not ours:
            self.end()
        elif ours != noted:
            self.store.fs.makedirs(self._own.rpartition("/")[0], exist_ok=True)
            self.store.fs.pipe_file(self._own, json.dumps(sorted(ours)).encode())
        return ours

    def end(self) -> None:
        """Says that all has been copied, and belongs to the archive from now on."""
        if not self.store.is_local:
            with suppress(FileNotFoundError):
                self.store.fs.rm_file(self._own)

    def remove(self) -> None:
        """Removes what the copy made, unless it has come to its end; the note goes last, so that this can be repeated.

        Nobody may be copying.
        """
        if self.store.is_local:
            with suppress(FileNotFoundError):
                self.store.files.remove_tree(self._own)
            return
        noted = self._noted()
        self._drop(noted)
        if noted and not self._there():
            with suppress(FileNotFoundError):  # the folders, where the store has such
                self.store.files.remove_tree(self._place)
        self.end()

    def _noted(self) -> set[str]:
        """What a copy that has not ended made or was going to make."""
        self.store.fs.invalidate_cache()
        try:
            noted = set[str](json.loads(self.store.fs.cat_file(self._own)))
        except (FileNotFoundError, ValueError):
            return set()  # where a crash cut the note off, nothing was copied yet
        has_ended = self._flag in noted and self.store.fs.exists(f"{self._place}/{self._flag}")
        return set() if has_ended else noted

    def _there(self) -> set[str]:
        self.store.fs.invalidate_cache()
        return {str(name)[len(self._place) :].lstrip("/") for name in self.store.fs.find(self._place)}

    def _drop(self, names: Collection[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                self.store.fs.rm_file(f"{self._place}/{name}" if name else self._place)
