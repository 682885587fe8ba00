"""Decides which run publishes an output on an object store, which has no locks that die with their holder."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress

from falcon_assets.errors import BeingWrittenError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.objects.conditional_writes import ConditionalWrites, conditional_writes

_CHECK_SECONDS = 1.0


class Ownership:
    """The object beside an output that names the run which writes it.

    A run writes its name on entering, over that of a run before it, which has ended, or is dead to the database. A run
    that finds another name was overtaken, and stops (BeingWrittenError). On a store with conditional writes, the name
    is written only over the one that was found: of two runs at the same moment one is refused.
    """

    def __init__(self, store: ClusterStore, path: str, where: str) -> None:
        self._fs, self._store, self.path, self._where = store.fs, store, path, where
        self._name = uuid.uuid4().hex.encode()
        self._writes: ConditionalWrites | None = None
        self._etag: str | None = None
        self._checked = time.monotonic()

    def take(self) -> bool:
        """Writes this run's name; returns whether a run before it may have left something."""
        self._writes = conditional_writes(self._store)
        if self._writes is None:
            self._fs.pipe_file(self.path, self._name)
            return True
        if self._wrote(self._writes, None):
            return False
        try:
            before = self._writes.etag(self.path)
        except FileNotFoundError:
            raise self._overtaken() from None
        if not self._wrote(self._writes, before):
            raise self._overtaken()
        return True

    def begin(self) -> None:
        """Marks that this run begins to change what readers see; an overtaken run does not."""
        if self._writes is None or self._etag is None:
            self.check()
        else:
            self._name += b" publishes"
            if not self._wrote(self._writes, self._etag):
                raise self._overtaken()

    def check(self) -> None:
        if not self.is_ours():
            raise self._overtaken()
        self._checked = time.monotonic()

    def check_now_and_then(self) -> None:
        if time.monotonic() - self._checked > _CHECK_SECONDS:
            self.check()

    def is_ours(self) -> bool:
        try:
            if self._writes is not None and self._etag is not None:
                return self._writes.etag(self.path) == self._etag
            return bool(self._fs.cat_file(self.path) == self._name)
        except FileNotFoundError:
            return False

    def give_back(self, *, is_ours: bool = False) -> None:
        """Removes the object, if it has this run's name, or is known to have had it a moment ago."""
        if is_ours or self.is_ours():
            with suppress(FileNotFoundError):
                self._fs.rm_file(self.path)

    def _wrote(self, writes: ConditionalWrites, before: str | None) -> bool:
        self._etag = writes.write(self.path, self._name, before)
        if self._etag is None:
            if not self.is_ours():  # by its content
                return False
            self._etag = writes.etag(self.path)
        self._checked = time.monotonic()
        return True

    def _overtaken(self) -> BeingWrittenError:
        return BeingWrittenError(f"{self._where} is being written by another run meanwhile")
