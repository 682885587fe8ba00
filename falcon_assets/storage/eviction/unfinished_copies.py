"""Copies that began and did not come to an end: which there are, and how what they staged goes.

A note says so, from before a copy writes anything to the end of its publication::

    STAGING/copies/unfinished/KEY.SOURCE      the path of the instance, below the root

So what is unfinished is found without listing all that was ever replicated, and its instance is known although KEY is
a hash.
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
    """What sources began to bring for one instance of a target."""

    path: str
    """The target's instance, below the root."""
    sources: tuple[str, ...]
    """Names of the source clusters, in order."""


def unfinished_copies(store: ClusterStore) -> list[UnfinishedCopy]:
    """All of a target, in order: those that are under way too, and late changes of instances that are published.

    Copies to archives are not among them: the decisions on evictions tell of those.

    Raises:
        StorageError: the store cannot be read.
    """
    found: dict[str, list[str]] = {}
    with driver_explained(store.cluster.name, "list what is staged"):
        for note, path in _notes(store):
            source = note.rpartition(".")[2]
            if source != TO_ARCHIVE and unfinished_note(store, path, source) == note:  # nothing but what a copy wrote
                found.setdefault(path, []).append(source)
    return [UnfinishedCopy(path, tuple(sorted(found[path]))) for path in sorted(found)]


def remove_unfinished(store: ClusterStore, copy: UnfinishedCopy, flag: str | None) -> bool:
    """Removes what was staged for an instance that never came; False, and nothing removed, where something is there.

    On file systems it is moved aside: call :meth:`falcon_assets.storage.kinds.storage_kind.StorageKind.purge` at the
    end. The note goes last, so that the same call again completes this one.

    Args:
        store: The target's.
        copy: Found there.
        flag: Name of the feed's availability flag.

    Raises:
        StorageError: a run is copying or publishing it, or the store refuses.
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
    """The absolute path of each note, and what it says."""
    store.files.refresh()
    with suppress(FileNotFoundError):
        for note in sorted(map(str, store.fs.ls(unfinished_folder(store), detail=False))):
            with suppress(FileNotFoundError):  # the copy has just ended
                yield note, os.fsdecode(store.fs.cat_file(note))
