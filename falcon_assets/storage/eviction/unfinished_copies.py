"""Copies that began and did not end, and how what they staged is removed.

A note marks each, from before a copy writes anything to the end of its publication::

    STAGING/copies/unfinished/KEY.SOURCE      the path of the instance, below the root

So they are found without listing all that was ever replicated, and with their instance although KEY is a hash.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import NamedTuple

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import TO_ARCHIVE, unfinished_folder, unfinished_note


class UnfinishedCopy(NamedTuple):
    path: str
    sources: tuple[str, ...]


def unfinished_copies(store: ClusterStore) -> list[UnfinishedCopy]:
    """Lists them in order, with those in progress and late changes of published instances; no copies to archives."""
    found: dict[str, list[str]] = {}
    with driver_explained(store.cluster.name, "list what is staged"):
        for volume in store.there():
            for note, path in _notes(volume):
                source = note.rpartition(".")[2]
                if source != TO_ARCHIVE and unfinished_note(volume, path, source) == note:  # else no copy wrote it
                    found.setdefault(path, []).append(source)
    return [UnfinishedCopy(path, tuple(sorted(found[path]))) for path in sorted(found)]


def remove_unfinished(store: ClusterStore, copy: UnfinishedCopy, flag: str | None) -> bool:
    """Removes what was staged for an instance that never arrived; False, and nothing removed, if it did.

    Data is moved aside, as by :func:`evict`, and the note deleted last. Raises StorageError if a run is copying it.
    """
    where = f"cluster {store.cluster.name!r}: cannot remove what was staged of {copy.path}"
    kind, output = kind_of(store), OutputTarget(copy.path, flag)
    parts = [kind.copy_target(output, source) for source in copy.sources]
    with driver_explained(store.cluster.name, f"remove what was staged of {copy.path}"), ExitStack() as held:
        for part in parts:
            if not held.enter_context(part.held(where, 0)):
                raise StorageError(f"{where}: it is being copied by a run; it goes when that has ended")
        parts[0].recover(where)
        store.files.refresh()
        if store.fs.lexists(parts[0].place):
            return False
        removal = kind.removal(flag)
        for part in parts:
            part.discard(removal.set_aside)
    return True


def _notes(store: ClusterStore) -> Iterator[tuple[str, str]]:
    store.files.refresh()
    with suppress(FileNotFoundError):
        for note in sorted(map(str, store.fs.ls(unfinished_folder(store), detail=False))):
            with suppress(FileNotFoundError):  # the copy has just ended
                yield note, os.fsdecode(store.fs.cat_file(note))
