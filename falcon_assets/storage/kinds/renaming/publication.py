"""Publishing on file systems whose rename is atomic."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import permutations, product
from types import TracebackType

from falcon_assets.errors import BeingWrittenError, StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.kinds.renaming.output_swap import OutputSwap
from falcon_assets.storage.kinds.renaming.set_aside import replaced
from falcon_assets.storage.kinds.storage_kind import NOTHING_HELD, READERS_SECONDS
from falcon_assets.storage.output_target import OutputTarget

_LOCK_SECONDS = 3.0


class RenamePublication:
    """Publishes by two renames per output: the old instance out of its place, the new one into it.

    Raises StorageError if outputs are within one another, or in the staging or working location. ``verified`` is the
    version of the only output, from a writer that has verified it and made sure that it is on disk; ``held`` as in
    :meth:`.StorageKind.publish`.
    """

    def __init__(
        self,
        store: ClusterStore,
        process_key: str,
        outputs: Mapping[str, OutputTarget],
        verified: DataVersion | None = None,
        held: Mapping[str, HeldData] = NOTHING_HELD,
    ) -> None:
        self._cluster, self._process_key, self._store = store.cluster.name, process_key, store
        self._verified, self._held_data = verified, held
        self._swaps = {name: OutputSwap(store, one, f"{process_key}: {one.path}") for name, one in outputs.items()}
        self._replaced, self._held = replaced(store), ExitStack()
        self._check_apart(store)

    @classmethod
    def recover(cls, store: ClusterStore, process_key: str, target: OutputTarget) -> None:
        """Repairs an output that a crash left between its old and its new instance."""
        folder = OutputSwap(store, target, process_key).folder
        if store.fs.exists(folder) or store.fs.exists(f"{folder}.lock"):  # a killed one leaves its lock's file
            with cls(store, process_key, {"output": target}):
                pass  # entering it does that

    def __enter__(self) -> RenamePublication:
        self._store.require_root(claims=True, afresh=True)
        with driver_explained(self._cluster, "remove what was replaced"):  # before it needs space, and not only after
            self._replaced.purge(READERS_SECONDS, waits=False)
        with ExitStack() as held:
            # Always in the same order: two runs that share outputs must not wait for each other.
            for swap in sorted(self._swaps.values(), key=lambda swap: swap.key):
                with driver_explained(self._cluster, f"prepare {swap.target.path}"):
                    self._replaced.make()
                    if not held.enter_context(self._store.files.locked(f"{swap.folder}.lock", _LOCK_SECONDS)):
                        raise BeingWrittenError(
                            f"{self._process_key}: {swap.target.path} on cluster {self._cluster!r} is being written "
                            "by another run: wait until it has ended, or end it, and run this again"
                        )
                    held.callback(self._give_up, swap)
                    swap.prepare()
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._held.close()
        with driver_explained(self._cluster, "remove what was replaced"):
            self._replaced.purge(READERS_SECONDS, waits=False)

    def staging(self, name: str) -> str:
        return self._swaps[name].written

    def staging_url(self, name: str) -> str:
        return str(self._store.fs.unstrip_protocol(self.staging(name)))

    def keys(self, name: str) -> Mapping[str, str]:
        return {}

    def hold(self, name: str) -> HeldData:
        swap = self._swaps[name]
        with driver_explained(self._cluster, f"keep the output for {swap.target.path} aside"):
            held = swap.hold()
        return replace(held, place=str(self._store.fs.unstrip_protocol(held.place)))

    def commit(self, name: str) -> DataVersion:
        swap = self._swaps[name]
        # Who wrote to the path of a root that went away made its folders anew, in an empty mount point. Where a look is
        # a request, the folder of the attempt shows it: see :class:`OutputSwap`.
        self._store.require_root(claims=True)  # of a new root it is the first look that finds it there
        with driver_explained(self._cluster, f"publish {swap.target.path}"):
            return swap.publish_held(self._held_data[name]) if self._held_data else swap.publish(self._verified)

    def commit_kept(self, name: str, version: str, found: DataVersion) -> None:
        """Puts the kept version of that name in :class:`.KeptVersions` in place of the old instance."""
        swap = self._swaps[name]
        with driver_explained(self._cluster, f"restore {swap.target.path}"):
            swap.publish_kept(version, found)

    def _give_up(self, swap: OutputSwap) -> None:
        with driver_explained(self._cluster, f"clean up after {swap.target.path}"):
            if Ability.LOCK in self._store.files.cannot:
                swap.give_up()
            else:
                swap.recover()  # nobody else has the lock, and tasks of a killed run may have written meanwhile

    def _check_apart(self, store: ClusterStore) -> None:
        own = [(store.staging, "the staging location")]
        if Ability.LOCK not in store.files.cannot:  # else it is on this machine, and the outputs are not
            own.append((store.working, "the working location"))
        places = [(store.files.real(path), what) for path, what in own]
        finals = [(swap.place, f"output {name!r}") for name, swap in self._swaps.items()]
        for (path, output), (other, what) in [
            *permutations(finals, 2),
            *product(finals, places),
            *product(places, finals),
        ]:
            if f"{path}/".startswith(f"{other}/"):
                raise StorageError(
                    f"{self._process_key}: {output} ({path}) must not be within {what} ({other}) "
                    f"on cluster {self._cluster!r}"
                )
