"""Copies to archives that killed passes began, of instances that stay now or go elsewhere: nobody completes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from falcon_assets.errors import FalconError
from falcon_assets.ledger.evictions import Eviction
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.eviction.archiving import abandon_archive


def abandon_copies(
    earlier: Iterable[Eviction],
    going: Iterable[Eviction],
    clusters: Collection[str],
    store_of: Callable[[str, str | None], ClusterStore],
) -> Iterator[tuple[Eviction, FalconError]]:
    """Removes what is copied of earlier decisions to places where nothing goes now; nothing that is in an archive.

    What lies on a cluster that is not declared any more is out of reach, and is left.

    Args:
        earlier: Decisions that are not begun, but perhaps copied.
        going: All that is to be done now.
        clusters: Those that are declared.
        store_of: The store of one of them at a root.

    Yields:
        The decisions of which something could not be removed, and why.
    """
    wanted = {place for one in going for place in one.archive_places}
    for one in earlier:
        try:
            for cluster, root, path in sorted(one.archive_places - wanted):
                if cluster in clusters:
                    with driver_explained(cluster, f"remove what was copied to {root}{path}"):
                        abandon_archive(store_of(cluster, root or None), path, one.flag)
        except FalconError as error:
            yield one, error
