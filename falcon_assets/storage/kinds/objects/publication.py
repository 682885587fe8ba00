"""Publishing on object stores, which have no rename: the availability flag is the switch.

On commit the flag is removed, the files are copied to their place, remaining old ones are removed, and the flag is set.
So a reader who looks for the flag first sees the whole old instance, none, or the whole new one; after a kill at any
point, the next run does all of it again. If the feed keeps versions, see :class:`VersionSwitch`.
"""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.files.file_access import is_side_file
from falcon_assets.storage.instances.data_files import is_data, shown
from falcon_assets.storage.instances.data_version import DataVersion, version_of_entries
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.instances.instance_files import files_of
from falcon_assets.storage.kinds.objects.ownership import Ownership
from falcon_assets.storage.kinds.objects.versioned_output import VersionSwitch
from falcon_assets.storage.kinds.objects.written import LocalWritten, StoreWritten, Written
from falcon_assets.storage.kinds.storage_kind import NOTHING_HELD
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import copies_folder, held_folder, place_key


class ObjectPublication:
    """Publishes outputs that Spark writes to ``staging``, if it cannot reach the store, else to the store."""

    def __init__(
        self,
        store: ClusterStore,
        process_key: str,
        outputs: Mapping[str, OutputTarget],
        staging: LocalStaging | None,
        held: Mapping[str, HeldData] = NOTHING_HELD,
    ) -> None:
        self._store, self._fs, self._process_key, self._outputs = store, store.fs, process_key, outputs
        self._staging, self._held, self._run = staging, ExitStack(), uuid.uuid4().hex
        self._held_data = held
        for name, target in outputs.items():
            if target.flag is None:
                raise StorageError(
                    f"{process_key}: output {name!r} goes to an object store ({store!r}), where the flag says what is "
                    "complete: declare availability_flag for its feed"
                )
        keys = {name: place_key(target.path.strip("/")) for name, target in outputs.items()}
        self._folders = {name: f"{store.staging}/{key}" for name, key in keys.items()}
        self._owned = {
            # In the folder of the output: a connector looks for its folders upwards until it meets one.
            name: Ownership(store, f"{folder}/run", f"{process_key}: {outputs[name].path}")
            for name, folder in self._folders.items()
        }
        self._staged: dict[str, list[str]] = {}
        self._replaces_held: list[str] = []
        self._switches = {
            name: VersionSwitch(store, one.path, one.flag, one.keeps, f"{process_key}: {one.path}")
            for name, one in outputs.items()
            if one.flag and one.keeps
        }

    def __enter__(self) -> ObjectPublication:
        self._store.require_root(claims=True)
        with ExitStack() as held:
            for name, owned in self._owned.items():
                with driver_explained(self._store.cluster.name, f"prepare {self._outputs[name].path}"):
                    is_first = not owned.take()
                    held.callback(self._give_back, name)
                    if not is_first:
                        left = set(map(str, self._fs.find(self._folders[name])))  # by a killed run
                        self._remove(left - {owned.path})
                    if switch := self._switches.get(name):
                        switch.prepare(owned.check)
                        held.callback(self._drop_version, name)
            with driver_explained(self._store.cluster.name, f"prepare outputs of {self._process_key}"):
                self._written = self._prepared(held)
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._held:
            for name in self._replaces_held if error is None else ():
                with driver_explained(self._store.cluster.name, f"clean up after {self._outputs[name].path}"):
                    self._remove_held(name)

    def staging(self, name: str) -> str:
        return self._written.place(name)

    def staging_url(self, name: str) -> str:
        return self._written.url(name)

    def keys(self, name: str) -> Mapping[str, str]:
        return {}

    def hold(self, name: str) -> HeldData:
        target, owned, place = self._outputs[name], self._owned[name], self._held_folder(name)
        with driver_explained(self._store.cluster.name, f"keep the output for {target.path} aside"):
            found = self._written.files(name)
            self._require(name, found)
            owned.check()
            self._remove_held(name)
            self._written.bring(name, self._data(name, found), place, owned.check_now_and_then)
            return HeldData(str(self._fs.unstrip_protocol(place)), self._held_version(name))

    def _held_folder(self, name: str) -> str:
        return held_folder(self._store, posixpath.basename(self._folders[name]))

    def _remove_held(self, name: str) -> None:
        self._store.files.refresh()
        self._remove(self._fs.find(self._held_folder(name)))

    def _held_version(self, name: str) -> DataVersion:
        self._store.files.refresh()
        return version_of_entries(self._store.files, files_of(self._store, self._held_folder(name), None))

    def commit(self, name: str) -> DataVersion:
        """Publishes an output. After a StorageError the old instance is unchanged, or gone until the next run."""
        target, owned = self._outputs[name], self._owned[name]
        final, flag = self._store.path(target.path), f"{self._store.path(target.path)}/{target.flag}"
        with driver_explained(self._store.cluster.name, f"publish {target.path}"):
            found = self._written.files(name)
            owned.begin()  # who was overtaken may find nothing because of that
            self._require(name, found)
            written = self._data(name, found)
            if self._held_data and self._held_version(name) != self._held_data[name].version:
                raise self._error(target, self._held_data[name].changed)
            if self._held_data or target.holds:
                self._replaces_held.append(name)
            if switch := self._switches.get(name):
                self._written.bring(name, written, switch.place, owned.check_now_and_then)
                return switch.switch(owned.check)
            with suppress(FileNotFoundError):
                self._fs.rm_file(flag)
            self._written.bring(name, written, final, owned.check_now_and_then)
            version = self._only(written, target)
            owned.check()
            self._fs.pipe_file(flag, b"")
            self._staged[name] = [f"{self.staging(name)}/{one}" for one in found]
            return version

    def _require(self, name: str, found: Sequence[str]) -> None:
        if not found:
            held = self._held_data.get(name)
            raise self._error(
                self._outputs[name], held.gone if held else f"nothing was written to {self.staging(name)}"
            )

    def _data(self, name: str, found: Iterable[str]) -> list[str]:
        flag = self._outputs[name].flag
        return [one for one in found if one != flag and not any(map(is_side_file, one.split("/")))]

    def _error(self, target: OutputTarget, why: str) -> StorageError:
        return StorageError(f"cluster {self._store.cluster.name!r}: cannot publish {target.path}: {why}")

    def restore(self, name: str, version: str, *, dry_run: bool) -> tuple[DataVersion, bool]:
        """Makes a kept version of output ``name`` the instance; returns it, and whether it was not yet."""
        target, owned = self._outputs[name], self._owned[name]
        with driver_explained(self._store.cluster.name, f"restore {target.path}"):
            owned.begin()
            found = self._switches[name].restore(version, owned.check, dry_run=dry_run)
            if found[1] and not dry_run:  # it was planned for what is replaced now
                self._remove(self._fs.find(copies_folder(self._store, target.path)))
            return found

    def _prepared(self, held: ExitStack) -> Written:
        if self._held_data:
            return StoreWritten(self._store, {name: self._held_folder(name) for name in self._outputs})
        if self._staging is not None:
            return LocalWritten(self._store, held.enter_context(self._staging.folder()))
        places = {name: f"{folder}/{self._run}" for name, folder in self._folders.items()}
        for name in places.keys() - self._switches.keys():
            held.callback(self._drop, name)
        return StoreWritten(self._store, places | {name: one.place for name, one in self._switches.items()})

    def _only(self, written: Iterable[str], target: OutputTarget) -> DataVersion:
        final = self._store.path(target.path)
        self._store.files.refresh()
        found = self._fs.find(final, detail=True)
        there = {str(name)[len(final) + 1 :]: entry for name, entry in found.items()}
        self._remove(f"{final}/{one}" for one in there.keys() - {*written})
        if lost := sorted({*written} - there.keys()):
            raise self._error(target, f"{shown(lost[0])} is not there any more: somebody removed it")
        return version_of_entries(
            self._store.files, ((one, there[one]) for one in written if is_data(one, target.flag))
        )

    def _drop(self, name: str) -> None:
        with driver_explained(self._store.cluster.name, f"clean up after {self._outputs[name].path}"):
            self._remove(self._staged.get(name) or self._fs.find(f"{self._folders[name]}/{self._run}"))

    def _drop_version(self, name: str) -> None:
        with driver_explained(self._store.cluster.name, f"clean up after {self._outputs[name].path}"):
            self._switches[name].drop()

    def _give_back(self, name: str) -> None:
        with driver_explained(self._store.cluster.name, f"clean up after {self._outputs[name].path}"):
            self._owned[name].give_back(is_ours=name in self._staged)

    def _remove(self, paths: Iterable[str]) -> None:
        self._store.files.remove(paths)
