"""Who publishes an output on an object store, which has no locks that die with their holder."""

from __future__ import annotations

import errno
import threading
import time
import uuid
from contextlib import suppress

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore

_CHECK_SECONDS = 1.0
_lock = threading.Lock()
_conditional: dict[str, bool] = {}


class Ownership:
    """The object beside an output that names the run which writes it.

    A run writes its name on entering, over that of a run before it: the database, which gives process instances to
    runs, has made sure that the other one ended, or takes it for dead. A run that finds another name was overtaken, and
    stops. Where the store has conditional writes, the name is written only over the one that was found there: of two
    runs at the same moment one is told, whichever machine or database it comes from.

    Args:
        store: Where it lies.
        path: The object.
        where: Begins the message of errors.
    """

    def __init__(self, store: ClusterStore, path: str, where: str) -> None:
        self._fs, self._store, self.path, self._where = store.fs, store, path, where
        self._name = uuid.uuid4().hex.encode()
        self._etag: str | None = None
        self._checked = time.monotonic()

    def take(self) -> bool:
        """Writes this run's name; whether a run before it may have left something.

        Raises:
            StorageError: another run did at the same moment.
            OSError: as the store says.
        """
        if not has_conditional_writes(self._store):
            self._fs.pipe_file(self.path, self._name)
            return True
        if self._wrote(IfNoneMatch="*"):
            return False
        try:
            before = str(self._fs.info(self.path)["ETag"])
        except FileNotFoundError:
            raise self._overtaken() from None
        if not self._wrote(IfMatch=before):
            raise self._overtaken()
        return True

    def begin(self) -> None:
        """This run begins to change what readers see; who was overtaken does not.

        Raises:
            StorageError: it was overtaken.
            OSError: as the store says.
        """
        if self._etag is None:
            self.check()
        else:
            self._name += b" publishes"
            if not self._wrote(IfMatch=self._etag):
                raise self._overtaken()

    def check(self) -> None:
        """Goes on, where this run was not overtaken.

        Raises:
            StorageError: it was.
            OSError: as the store says.
        """
        if not self.is_ours():
            raise self._overtaken()
        self._checked = time.monotonic()

    def check_now_and_then(self) -> None:
        """As :meth:`check`, which is asked again when it is a while ago.

        Raises:
            StorageError: as :meth:`check`.
            OSError: as the store says.
        """
        if time.monotonic() - self._checked > _CHECK_SECONDS:
            self.check()

    def is_ours(self) -> bool:
        """Whether the object has this run's name."""
        try:
            if self._etag is not None:
                return bool(self._fs.info(self.path)["ETag"] == self._etag)
            return bool(self._fs.cat_file(self.path) == self._name)
        except FileNotFoundError:
            return False

    def give_back(self, *, is_ours: bool = False) -> None:
        """Removes the object, where it has this run's name, or is known to have had it a moment ago."""
        if is_ours or self.is_ours():
            with suppress(FileNotFoundError):
                self._fs.rm_file(self.path)

    def _wrote(self, **condition: str) -> bool:
        try:
            self._etag = self._fs.pipe_file(self.path, self._name, **condition)["ETag"]
        except OSError as error:
            if not is_refusal(error):
                raise
            # A driver that got no answer asks again, and is refused because of what it wrote itself.
            self._etag = None
            if not self.is_ours():
                return False
            self._etag = str(self._fs.info(self.path)["ETag"])
        self._checked = time.monotonic()
        return True

    def _overtaken(self) -> StorageError:
        return StorageError(f"{self._where} is being written by another run meanwhile")


def has_conditional_writes(store: ClusterStore) -> bool:
    """Whether the store writes an object only where none, or a certain one, is there; found out once, by trying.

    Raises:
        OSError: as the store says.
    """
    key = f"{store.endpoint} {store.path('')}"
    with _lock:
        if key not in _conditional:
            _conditional[key] = "s3" in store.fs.protocol and _keeps_conditions(store)
        return _conditional[key]


def _keeps_conditions(store: ClusterStore) -> bool:
    path = f"{store.staging}/.probe-{uuid.uuid4().hex}"
    etag = store.fs.pipe_file(path, b"1", IfNoneMatch="*")["ETag"]
    try:
        return _refuses(store, path, IfNoneMatch="*") and _refuses(store, path, IfMatch=f'"{etag[1:-1][::-1]}"')
    finally:
        store.fs.rm_file(path)


def _refuses(store: ClusterStore, path: str, **condition: str) -> bool:
    try:
        store.fs.pipe_file(path, b"2", **condition)
    except OSError as error:
        return is_refusal(error)
    return False


def is_refusal(error: OSError) -> bool:
    """What s3fs makes of a condition that is not met: somebody else wrote or removed the object."""
    return isinstance(error, FileExistsError | FileNotFoundError) or error.errno == errno.EINVAL
