"""One output on its way from staging to its final path, and its repair after a crash.

Each final path has a folder of its own in the staging location, and each attempt to publish there a folder in that::

    STAGING/KEY/ATTEMPT/written    what the workflow writes
    STAGING/KEY/SEALED/ready       the same: the folder of the attempt got a name that only the publisher knows
    STAGING/KEY/SEALED/old         the old instance, moved out of its place
    STAGING/KEY/SEALED/kept-as     the name of the version that the old instance is kept as, if it is
    STAGING/KEY/SEALED/from        the name of the version that ``ready`` was, if one is restored
    STAGING/KEY/SEALED/was-held    that ``ready`` was kept aside, in STAGING/held/KEY

``ready`` leaves by the rename into the final path. So ``ready`` beside ``old`` means: the crash happened between the
two renames, and the old instance is moved back. ``old`` alone has its successor: it becomes a kept version, or its
attempt is set aside, as a whole because that needs no space on a full disk.

A store without locks that die with their holder needs none: the database gives an instance to one run; a run that
begins renames the folders of all attempts before it, and a run that was taken for dead finds its folder gone: of two
renames the store lets one happen, and the other one fails. A task of Spark that makes such a folder again makes another
one: it has another number.
"""

from __future__ import annotations

import errno
import uuid
from contextlib import suppress
from functools import cached_property

from falcon_assets.errors import BeingWrittenError, StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.instances.instance_files import list_instance
from falcon_assets.storage.kinds.renaming.kept_versions import KeptVersions
from falcon_assets.storage.kinds.renaming.set_aside import SetAside, replaced
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import held_folder, place_key

_REMOVE_ATTEMPTS = 3


class OutputSwap:
    """All methods are to be called with the lock of :attr:`key` held, where the store has locks."""

    def __init__(self, store: ClusterStore, target: OutputTarget, where: str) -> None:
        self.target, self._store, self._fs, self._files, self._where = target, store, store.fs, store.files, where
        self.final = store.path(target.path)
        folder, _, name = self.final.rpartition("/")
        # However a path is spelt: through a link to its parent it is the same instance.
        self.place = f"{self._files.real(folder or '/').rstrip('/')}/{name}"
        self._root = store.path("").rstrip("/")
        self.key = place_key(self.place[len(self._root) :].strip("/"))
        self.folder = f"{store.staging}/{self.key}"
        self._attempt = f"{self.folder}/{uuid.uuid4().hex}"
        self._number: object = None
        self._sealed: str | None = None
        self.written = f"{self._attempt}/written"

    @cached_property
    def held(self) -> str:
        return held_folder(self._store, self.key)

    @cached_property
    def _replaced(self) -> SetAside:
        return replaced(self._store)

    @cached_property
    def _versions(self) -> KeptVersions:
        return KeptVersions(self._store)

    def prepare(self) -> None:
        """Takes over from earlier attempts, and raises now what would make :meth:`publish` fail hours later."""
        self.recover()
        self._check_place("directory" if self.target.flag else None)
        self._fs.makedirs(self._attempt, exist_ok=True)
        self._files.require_moves(self._attempt, self.final)
        self._number = self._fs.info(self._attempt)["ino"]

    def publish(self, verified: DataVersion | None = None) -> DataVersion:
        """Seals and completes what was written, then swaps it in; on any error the old instance stays.

        ``verified`` is from a writer that has verified it and made sure that it is on disk.
        """
        sealed = self._sealed_with_output()
        self._files.move(f"{sealed}/written", f"{sealed}/ready")
        version = self._completed(f"{sealed}/ready", verified)
        self._swap(sealed, version)
        if self.target.holds:
            self._files.discard(self.held)
        return version

    def hold(self) -> HeldData:
        """Moves what was written aside, in place of what was held before."""
        sealed, place = self._sealed_with_output(), f"{self.held}/written"
        self._files.discard(self.held)
        self._files.make_folder(self.held)
        self._files.move(f"{sealed}/written", place)
        return HeldData(place, self._version(place))

    def publish_held(self, held: HeldData) -> DataVersion:
        """Swaps in what was held; after a kill that came too late for that, it is the present instance."""
        sealed = self._seal()
        self._secure()
        self._note(f"{sealed}/was-held", "")
        try:
            self._files.move(f"{self.held}/written", f"{sealed}/ready")
        except FileNotFoundError:
            flag = self.target.flag
            is_there = self._fs.exists(f"{self.final}/{flag}" if flag else self.final)
            if is_there and self._version(self.final) == held.version:
                self._files.discard(self.held)
                return held.version
            raise self._error(held.gone) from None
        if self._completed(f"{sealed}/ready", None) != held.version:
            raise self._error(held.changed)
        self._swap(sealed, held.version)
        self._files.discard(self.held)
        return held.version

    def publish_kept(self, name: str, version: DataVersion) -> None:
        """Swaps in a kept version, which is removed from the kept ones."""
        sealed = self._seal()
        self._secure()
        self._note(f"{sealed}/from", name)
        try:
            self._files.move(self._versions.place(name), f"{sealed}/ready")
        except FileNotFoundError:
            raise self._overtaken() from None
        self._swap(sealed, version)

    def recover(self) -> None:
        """Ends all attempts: puts an old instance back that one left without its successor."""
        for attempt in self._files.entries(self.folder):
            mine = f"{self.folder}/{uuid.uuid4().hex}"
            with suppress(FileNotFoundError):  # others are doing the same
                self._files.move(attempt, mine)  # from here on whoever had it is overtaken
                self._restore(mine)
                self._drop(mine)
        with suppress(OSError):  # the tasks of a killed run may still write there; the next run cleans up again
            self._fs.rmdir(self.folder)

    def give_up(self) -> None:
        """Ends this attempt, and no other; does nothing if it was completed."""
        for attempt in filter(None, (self._sealed, self._attempt)):
            with suppress(FileNotFoundError):
                if self._fs.exists(attempt):
                    self._restore(attempt)
                    self._drop(attempt)
        with suppress(OSError):
            self._fs.rmdir(self.folder)

    def _sealed_with_output(self) -> str:
        sealed = self._seal()
        if not self._fs.lexists(f"{sealed}/written"):
            raise self._error(f"nothing was written to {self.written}")
        return sealed

    def _version(self, path: str) -> DataVersion:
        return fingerprint(self._store, path[len(self._root) :], self.target.flag)

    def _seal(self) -> str:
        sealed = f"{self.folder}/{uuid.uuid4().hex}"
        try:
            self._files.move(self._attempt, sealed)
        except FileNotFoundError:
            raise self._overtaken() from None
        if self._fs.info(sealed)["ino"] != self._number:
            raise self._overtaken()  # it is what tasks of this run have made again
        self._sealed = sealed
        return sealed

    def _secure(self) -> None:
        """Makes the folders of this attempt survive a power cut: from here on they hold what is nowhere else."""
        for folder in (self.folder, self.folder.rpartition("/")[0]):
            self._files.sync(folder)

    def _swap(self, sealed: str, version: DataVersion) -> None:
        try:
            self._note_version(sealed, version)
            with suppress(FileNotFoundError):
                self._files.move(self.final, f"{sealed}/old")
                self._require_expected(f"{sealed}/old")  # nobody adds to it any more
            self._bring(f"{sealed}/ready", self.final)
        except BaseException as error:
            self._restore(sealed)
            if isinstance(error, FileExistsError) or not self._fs.exists(sealed):
                raise self._overtaken() from None
            raise
        self._drop(sealed)
        if self.target.keeps:  # it is the present one now
            again = self._versions.place(self._versions.name(self.target.keeps, version.version))
            if self._fs.lexists(again):
                self._replaced.take(again)

    def _require_expected(self, old: str) -> None:
        expected = self.target.replaces
        if expected and list_instance(self._store, old[len(self._root) :], self.target.flag).signature != expected:
            raise self._error("it was written meanwhile")

    def _bring(self, path: str, place: str) -> None:
        """Moves it, and makes the folder for it: retention may be removing an empty one at that moment."""
        folder = place.rpartition("/")[0]
        for tries_left in (2, 1, 0):
            try:
                self._files.move(path, place)
            except FileNotFoundError:
                if not tries_left or not self._fs.lexists(path):
                    raise
                self._files.make_folder(folder)
            else:
                self._files.sync(folder)
                return

    def _restore(self, attempt: str) -> None:
        if not self._fs.lexists(f"{attempt}/ready"):
            return
        if self._fs.lexists(f"{attempt}/old"):
            with suppress(FileExistsError):
                self._bring(f"{attempt}/old", self.final)
        if self._fs.exists(f"{attempt}/from"):
            place = self._versions.place(self._fs.cat_file(f"{attempt}/from").decode())
            with suppress(FileExistsError):
                self._bring(f"{attempt}/ready", place)
        elif self._fs.exists(f"{attempt}/was-held"):
            with suppress(FileExistsError):
                self._bring(f"{attempt}/ready", f"{self.held}/written")

    def _drop(self, attempt: str) -> None:
        old = f"{attempt}/old"
        if self._fs.lexists(old):
            with suppress(FileNotFoundError):
                place = self._versions.place(self._fs.cat_file(f"{attempt}/kept-as").decode())
                with suppress(FileExistsError):
                    self._bring(old, place)
                    self._remove(attempt)
                    return
            self._replaced.take_folder(attempt)
        else:
            self._remove(attempt)

    def _remove(self, attempt: str) -> None:
        with suppress(OSError):  # mostly nothing is left in it
            self._fs.rmdir(attempt)
            return
        for _ in range(_REMOVE_ATTEMPTS):
            try:
                self._files.remove_tree(attempt)
            except OSError as error:
                # The tasks of a killed run still write there: harmless, and gone with the next run at the latest.
                if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                    raise
            if not self._fs.lexists(attempt):
                return

    def _note_version(self, sealed: str, new: DataVersion) -> None:
        """Notes what the old instance is kept as, before anything moves: recovery after a crash does the rest."""
        keeps, flag = self.target.keeps, self.target.flag
        if keeps is None or not self._fs.exists(f"{self.final}/{flag}" if flag else self.final):
            return  # what is no whole instance is no version
        old = self._version(self.final)
        if old.version != new.version:
            name = self._versions.name(keeps, old.version)
            self._files.make_folder(self._versions.place(name).rpartition("/")[0])
            self._note(f"{sealed}/kept-as", name)

    def _note(self, path: str, name: str) -> None:
        self._fs.pipe_file(path, name.encode())
        self._files.sync(path)

    def _completed(self, ready: str, verified: DataVersion | None) -> DataVersion:
        flag = self.target.flag
        if self._files.is_link(ready):
            raise self._error(f"the output is a symbolic link: write a file or a folder to {self.written}")
        is_folder = self._fs.isdir(ready)
        if self._check_place("directory" if is_folder else "file"):
            self._secure()
        if is_folder:
            self._files.remove_side_files(ready, flag)
            if flag is not None and not self._fs.exists(f"{ready}/{flag}"):
                self._fs.pipe_file(f"{ready}/{flag}", b"")
        elif flag is not None:
            raise self._error(f"the output is a single file, which cannot hold the availability flag {flag}")
        self._files.set_permission(ready, self.target.permission)
        if verified is not None:
            self._files.sync(ready)
            return verified
        version = self._version(ready)
        self._files.sync_tree(ready)
        return version

    def _check_place(self, kind: str | None) -> bool:
        """Returns whether something is there."""
        if self._files.is_link(self.final):
            raise self._error(f"{self.final} is a symbolic link: move it away")
        try:
            present = str(self._fs.info(self.final)["type"])
        except (FileNotFoundError, NotADirectoryError):
            return False
        if kind is not None and present != kind:
            here, new = ("a file", "a folder") if kind == "directory" else ("a folder", "a single file")
            raise self._error(f"{self.final} is {here}, but the output is {new}: move it away")
        return True

    def _error(self, why: str) -> StorageError:
        return StorageError(f"cluster {self._store.cluster.name!r}: cannot publish {self.target.path}: {why}")

    def _overtaken(self) -> BeingWrittenError:
        self._store.require_root(afresh=True)  # where the root was moved, its folders are gone, or made anew
        return BeingWrittenError(f"{self._where} is being written by another run meanwhile")
