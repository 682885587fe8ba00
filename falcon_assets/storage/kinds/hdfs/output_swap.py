"""One output on its way from staging to its final path, and its repair after a crash.

Each final path has a folder of its own in the staging location, and each attempt to publish there a folder in that::

    STAGING/KEY/ATTEMPT/written    what the workflow writes
    STAGING/KEY/SEALED/ready       the same: the folder of the attempt got a name that only the publisher knows
    STAGING/KEY/SEALED/old         the old instance, moved out of its place
    STAGING/KEY/SEALED/kept-as     the name of the version that the old instance is kept as, if it is
    STAGING/KEY/SEALED/from        the name of the version that ``ready`` was, if one is restored

``ready`` leaves by the rename into the final path. So ``ready`` beside ``old`` means: the crash happened between the
two renames, and the old instance is moved back. ``old`` alone has its successor.

There are no locks that die with their holder. The database gives an instance to one run; a run that begins renames the
folders of all attempts before it, and a run that was taken for dead finds its folder gone: of two renames the namenode
lets one happen, and the other one fails. A task of Spark that makes such a folder again makes another one: it has
another number.
"""

from __future__ import annotations

import uuid
from contextlib import suppress

from falcon_assets.errors import BeingWrittenError, StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from falcon_assets.storage.kinds.hdfs.kept_versions import HdfsVersions
from falcon_assets.storage.kinds.hdfs.set_aside import replaced
from falcon_assets.storage.kinds.hdfs.whole_folders import apply_permission_on_hdfs, remove_side_files_on_hdfs
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import place_key


class HdfsSwap:
    def __init__(self, store: ClusterStore, target: OutputTarget, where: str) -> None:
        self.target, self._store, self._fs, self._where = target, store, store.fs, where
        self.final = store.path(target.path)
        self.key = place_key(target.path.strip("/"))
        self._replaced, self._versions = replaced(store), HdfsVersions(store)
        self._folder = f"{store.staging}/{self.key}"
        self._attempt = f"{self._folder}/{uuid.uuid4().hex}"
        self._number: object = None
        self._sealed: str | None = None
        self.written = f"{self._attempt}/written"

    def prepare(self) -> None:
        """Takes over from earlier attempts, and raises now what would make :meth:`publish` fail hours later."""
        self.recover()
        if self.target.flag:
            self._check_place("directory")
        self._fs.mkdir(self._attempt)
        self._number = self._fs.info(self._attempt)["ino"]

    def publish(self) -> DataVersion:
        """Seals and completes what was written, then swaps it in; on any error the old instance stays."""
        sealed = self._seal()
        if not self._fs.exists(f"{sealed}/written"):
            raise self._error(f"nothing was written to {self.written}")
        self._fs.mv(f"{sealed}/written", f"{sealed}/ready")
        version = self._complete(f"{sealed}/ready")
        self._swap(sealed, version)
        return version

    def publish_kept(self, name: str, version: DataVersion) -> None:
        """Swaps in a kept version, which is removed from the kept ones."""
        sealed = self._seal()
        self._fs.pipe_file(f"{sealed}/from", name.encode())
        try:
            self._fs.mv(self._versions.place(name), f"{sealed}/ready")
        except FileNotFoundError:
            raise self._overtaken() from None
        self._swap(sealed, version)

    def recover(self) -> None:
        """Ends all attempts: puts an old instance back that one left without its successor."""
        for attempt in self._attempts():
            mine = f"{self._folder}/{uuid.uuid4().hex}"
            with suppress(FileNotFoundError):  # others are doing the same
                self._fs.mv(attempt, mine)  # from here on whoever had it is overtaken
                self._restore(mine)
                self._drop(mine)
        with suppress(OSError):
            self._fs.rmdir(self._folder)

    def give_up(self) -> None:
        """Ends this attempt, and no other; does nothing if it was completed."""
        for attempt in filter(None, (self._sealed, self._attempt)):
            with suppress(FileNotFoundError):
                if self._fs.exists(attempt):
                    self._restore(attempt)
                    self._drop(attempt)
        with suppress(OSError):
            self._fs.rmdir(self._folder)

    def _attempts(self) -> list[str]:
        try:
            return list(self._fs.ls(self._folder, detail=False))
        except FileNotFoundError:
            return []

    def _seal(self) -> str:
        sealed = f"{self._folder}/{uuid.uuid4().hex}"
        try:
            self._fs.mv(self._attempt, sealed)
        except FileNotFoundError:
            raise self._overtaken() from None
        if self._fs.info(sealed)["ino"] != self._number:
            raise self._overtaken()  # it is what tasks of this run have made again
        self._sealed = sealed
        return sealed

    def _swap(self, sealed: str, version: DataVersion) -> None:
        try:
            self._note_version(sealed, version)
            with suppress(FileNotFoundError):
                self._fs.mv(self.final, f"{sealed}/old")
            self._bring(f"{sealed}/ready", self.final)
        except (FileNotFoundError, FileExistsError):
            raise self._overtaken() from None
        except BaseException:
            self._restore(sealed)
            raise
        self._drop(sealed)
        if self.target.keeps:  # it is the present one now
            self._replaced.take(self._versions.place(self._versions.name(self.target.keeps, version.version)))

    def _bring(self, path: str, place: str) -> None:
        """Moves it, and makes the folder for it: retention may be removing an empty one at that moment."""
        for is_last in (False, True):
            self._fs.mkdir(place.rpartition("/")[0])
            try:
                self._fs.mv(path, place)
            except FileNotFoundError:
                if is_last or not self._fs.exists(path):
                    raise
            else:
                return

    def _restore(self, attempt: str) -> None:
        is_ready = self._fs.exists(f"{attempt}/ready")
        if is_ready and self._fs.exists(f"{attempt}/old"):
            with suppress(FileExistsError):
                self._bring(f"{attempt}/old", self.final)
        if is_ready and self._fs.exists(f"{attempt}/from"):
            place = self._versions.place(self._fs.cat_file(f"{attempt}/from").decode())
            with suppress(FileExistsError):
                self._bring(f"{attempt}/ready", place)

    def _drop(self, attempt: str) -> None:
        old = f"{attempt}/old"
        if self._fs.exists(old):
            with suppress(FileNotFoundError):
                place = self._versions.place(self._fs.cat_file(f"{attempt}/kept-as").decode())
                with suppress(FileExistsError):
                    self._bring(old, place)
            self._replaced.take(old)
        with suppress(FileNotFoundError):
            self._fs.rm(attempt, recursive=True)

    def _note_version(self, sealed: str, new: DataVersion) -> None:
        """Notes what the old instance is kept as, before anything moves: recovery after a crash does the rest."""
        keeps, flag = self.target.keeps, self.target.flag
        if keeps is None or not self._fs.exists(f"{self.final}/{flag}" if flag else self.final):
            return  # what is no whole instance is no version
        old = fingerprint(self._store, self.target.path, flag)
        if old.version != new.version:
            self._fs.pipe_file(f"{sealed}/kept-as", self._versions.name(keeps, old.version).encode())

    def _complete(self, ready: str) -> DataVersion:
        flag, kind = self.target.flag, str(self._fs.info(ready)["type"])
        self._check_place(kind)
        if kind == "directory":
            remove_side_files_on_hdfs(self._fs, ready, flag)
            if flag is not None:
                self._fs.pipe_file(f"{ready}/{flag}", b"")
        elif flag is not None:
            raise self._error(f"the output is a single file, which cannot hold the availability flag {flag}")
        apply_permission_on_hdfs(self._fs, ready, self.target.permission)
        return fingerprint(self._store, ready[len(self._store.path("").rstrip("/")) :], flag)

    def _check_place(self, kind: str) -> None:
        try:
            present = str(self._fs.info(self.final)["type"])
        except (FileNotFoundError, NotADirectoryError):
            return
        if present != kind:
            here, new = ("a file", "a folder") if kind == "directory" else ("a folder", "a single file")
            raise self._error(f"{self.final} is {here}, but the output is {new}: move it away")

    def _error(self, why: str) -> StorageError:
        return StorageError(f"cluster {self._store.cluster.name!r}: cannot publish {self.target.path}: {why}")

    def _overtaken(self) -> BeingWrittenError:
        return BeingWrittenError(f"{self._where} is being written by another run meanwhile")
