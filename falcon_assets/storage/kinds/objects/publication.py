"""Publishing on object stores, which have no rename: the availability flag is the switch.

Outputs are written to the staging location. On commit the flag goes, the objects are copied to their place by the store
itself, the old ones that are left go, and the flag is set. So a reader who looks for the flag first sees the whole old
instance, none, or the whole new one; wherever a run is killed, the next one does all of it again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.instances.data_files import is_side_file
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import place_key

_REQUESTS = 16
"""How many objects are copied at once."""


class ObjectPublication:
    """Publishes the outputs of one process instance on an object store.

    There are no locks that die with their holder. Instead each run writes its name beside the outputs on entering; one
    that finds another name when it commits was overtaken, and stops.

    Args:
        store: An object store.
        process_key: The process instance, for messages.
        outputs: By name.

    Raises:
        StorageError: an output has no flag.
    """

    def __init__(self, store: ClusterStore, process_key: str, outputs: Mapping[str, OutputTarget]) -> None:
        self._store, self._fs, self._process_key, self._outputs = store, store.fs, process_key, outputs
        self._run = uuid.uuid4().hex
        for name, target in outputs.items():
            if target.flag is None:
                raise StorageError(
                    f"{process_key}: output {name!r} goes to an object store ({store!r}), where the flag says what is "
                    "complete: declare availability_flag for its feed"
                )

    def __enter__(self) -> ObjectPublication:
        for name in self._outputs:
            with driver_explained(self._store.cluster.name, f"prepare {self._outputs[name].path}"):
                self._remove(self._fs.find(self._folder(name)))  # what a killed run left
                self._fs.pipe_file(self._owner(name), self._run.encode())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for name in self._outputs:
            with driver_explained(self._store.cluster.name, f"clean up after {self._outputs[name].path}"):
                self._remove(self._fs.find(f"{self._folder(name)}/{self._run}"))
                if self._is_ours(name):
                    self._remove([self._owner(name)])

    def staging(self, name: str) -> str:
        return f"{self._folder(name)}/{self._run}/written"

    def staging_url(self, name: str) -> str:
        return str(self._fs.unstrip_protocol(self.staging(name)))

    def commit(self, name: str) -> DataVersion:
        """Puts what was written for output ``name`` in place of its old instance, complete and with its flag.

        Raises:
            StorageError: nothing was written, another run writes the same, or the store refuses. Before anything is
                changed the old instance stays; later there is none until the next run.
        """
        target = self._outputs[name]
        final, flag = self._store.path(target.path), f"{self._store.path(target.path)}/{target.flag}"
        with driver_explained(self._store.cluster.name, f"publish {target.path}"):
            staged = self.staging(name)
            found = [str(path)[len(staged) + 1 :] for path in self._fs.find(staged)]
            if not self._is_ours(name):  # and has removed what this one wrote
                raise StorageError(f"{self._process_key}: {target.path} is being written by another run meanwhile")
            if not found:
                where = f"cluster {self._store.cluster.name!r}: cannot publish {target.path}"
                raise StorageError(f"{where}: nothing was written to {staged}")
            written = [one for one in found if one != target.flag and not any(map(is_side_file, one.split("/")))]
            if self._fs.exists(flag):
                self._fs.rm_file(flag)
            with ThreadPoolExecutor(_REQUESTS) as pool:
                copies = {f"{staged}/{relative}": f"{final}/{relative}" for relative in written}
                list(pool.map(self._fs.cp_file, copies.keys(), copies.values()))
            self._remove(set(map(str, self._fs.find(final))) - set(copies.values()))
            self._fs.pipe_file(flag, b"")
            return fingerprint(self._store, target.path, target.flag)

    def _folder(self, name: str) -> str:
        return f"{self._store.staging}/{place_key(self._outputs[name].path.strip('/'))}"

    def _owner(self, name: str) -> str:
        return f"{self._folder(name)}.run"

    def _is_ours(self, name: str) -> bool:
        try:
            return bool(self._fs.cat_file(self._owner(name)) == self._run.encode())
        except FileNotFoundError:
            return False

    def _remove(self, paths: Iterable[str]) -> None:
        self._store.files.remove(paths)
