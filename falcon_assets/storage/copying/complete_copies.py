"""Publishing what several sources bring, as soon as all of it has come."""

from __future__ import annotations

from collections.abc import Sequence

from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_folders import CopyFolders
from falcon_assets.storage.copying.copy_publication import publish_copies
from falcon_assets.storage.copying.instance_copy import is_published
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.publishing import OutputTarget


def publish_if_complete(
    store: ClusterStore, key: str, output: OutputTarget, source: str, sources: Sequence[str]
) -> DataVersion | None:
    """Publishes what was copied since the last publication; None where a source has not brought its part yet.

    Where nothing was, or somebody else has published it meanwhile, what is there is the answer.

    Args:
        store: The target's.
        key: The target instance, for messages.
        output: Where it goes.
        source: Name of the cluster whose part was copied just now, and will be again after a crash.
        sources: Names of all clusters that bring a part of this instance.

    Raises:
        StorageError: as :func:`publish_copies`.
    """
    kind_of(store).recover(key, output)
    ready = [one for one in sources if CopyFolders(store, output.path, one).finished() is not None]
    ready.sort(key=source.__ne__)
    published = is_published(store, output)
    if not published and any(not _has_come(store, output, one) for one in sources):
        return None
    if ready:
        try:
            return publish_copies(store, key, output, ready)
        except StorageError:
            # Two sources that finish in one moment both find the instance complete: one of them is first.
            left = [one for one in ready if CopyFolders(store, output.path, one).finished() is not None]
            if left or not is_published(store, output):
                raise
    return fingerprint(store, output.path, output.flag)


def _has_come(store: ClusterStore, output: OutputTarget, source: str) -> bool:
    """Whether the part is copied.

    On object stores it may lie in its place already: another source takes the flag away while it changes its own part.
    """
    folders = CopyFolders(store, output.path, source)
    return folders.finished() is not None or (not store.is_local and folders.is_published)
