"""Publishing on file systems whose rename is atomic."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from itertools import permutations, product
from pathlib import Path
from types import TracebackType

from falcon_assets.errors import BeingWrittenError, StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained
from falcon_assets.storage.files.path_lock import path_lock
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.renaming.output_swap import OutputSwap
from falcon_assets.storage.kinds.renaming.set_aside import replaced
from falcon_assets.storage.kinds.storage_kind import READERS_SECONDS
from falcon_assets.storage.output_target import OutputTarget

_LOCK_SECONDS = 3.0


class RenamePublication:
    """Publishes by two renames per output: the old instance out of its place, the new one into it.

    Raises StorageError if outputs are within one another, or in the staging or working location.
    """

    def __init__(self, store: ClusterStore, process_key: str, outputs: Mapping[str, OutputTarget]) -> None:
        self._cluster, self._staging, self._process_key = store.cluster.name, Path(store.staging), process_key
        self._store = store
        self._swaps = {name: OutputSwap(store, target) for name, target in outputs.items()}
        self._replaced = replaced(store)
        self._held = ExitStack()
        self._check_apart(store)

    @classmethod
    def recover(cls, store: ClusterStore, process_key: str, target: OutputTarget) -> None:
        """Repairs an output that a crash left between its old and its new instance."""
        folder = f"{store.staging}/{OutputSwap(store, target).key}"
        if Path(folder).exists() or Path(f"{folder}.lock").exists():  # a killed one leaves its lock's file
            with cls(store, process_key, {"output": target}):
                pass  # entering it does that

    def __enter__(self) -> RenamePublication:
        # Always in the same order: two runs that share outputs must not wait for each other.
        self._replaced.purge(READERS_SECONDS, waits=False)  # before it needs space, and not only after
        with ExitStack() as held:
            for swap in sorted(self._swaps.values(), key=lambda swap: swap.key):
                with explained(self._cluster, f"prepare {swap.target.path}"):
                    self._replaced.make()
                    if not held.enter_context(path_lock(self._staging / f"{swap.key}.lock", _LOCK_SECONDS)):
                        raise BeingWrittenError(
                            f"{self._process_key}: {swap.target.path} on cluster {self._cluster!r} is being written "
                            "by another run: let it end, or end it, and run this again"
                        )
                    swap.recover()
                    held.callback(self._recover, swap)
                    swap.prepare()
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._held.close()
        self._replaced.purge(READERS_SECONDS, waits=False)

    def staging(self, name: str) -> str:
        return str(self._swaps[name].written)

    def staging_url(self, name: str) -> str:
        return f"file://{self.staging(name)}"

    def commit(self, name: str, version: DataVersion | None = None) -> DataVersion:
        """Publishes output ``name``; ``version`` as for :meth:`OutputSwap.publish`."""
        swap = self._swaps[name]
        # Who wrote to the path of a root that went away made its folders anew, in an empty mount point. Where it goes
        # after this, what was written goes with it.
        self._store.require_root()
        with explained(self._cluster, f"publish {swap.target.path}"):
            return swap.publish(version)

    def _recover(self, swap: OutputSwap) -> None:
        with explained(self._cluster, f"clean up after {swap.target.path}"):
            swap.recover()

    def _check_apart(self, store: ClusterStore) -> None:
        own = [(store.staging, "the staging location"), (store.working, "the working location")]
        places = [(Path(path).resolve(), what) for path, what in own]
        finals = [(swap.place, f"output {name!r}") for name, swap in self._swaps.items()]
        for (path, output), (other, what) in [
            *permutations(finals, 2),
            *product(finals, places),
            *product(places, finals),
        ]:
            if path.is_relative_to(other):
                raise StorageError(
                    f"{self._process_key}: {output} ({path}) must not be within {what} ({other}) "
                    f"on cluster {self._cluster!r}"
                )
